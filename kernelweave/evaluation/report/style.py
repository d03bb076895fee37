"""Style sheet and script of the page, written into it."""

import base64
import hashlib

from kernelweave.evaluation import palette

LIGHT = """
--bg:#f5f6f8;--card:#fff;--ink:#1b222c;--soft:#56616f;--line:#dfe4e9;--fill:#edf0f3;--accent:#1a628a;
--bar:#5b9dbf;--bad:#a83c26;--warn:#fdf3e3;--warnline:#e3b765;color-scheme:light;
"""
DARK = """
--bg:#12151a;--card:#1a1f26;--ink:#e6eaef;--soft:#a3adba;--line:#2d343e;--fill:#252c35;--accent:#83c1e2;
--bar:#4d8fb3;--bad:#ef8b74;--warn:#2e2718;--warnline:#8a6a2c;color-scheme:dark;
"""


def _colours(values: tuple[str, ...]) -> str:
    return "".join(f"--k{i}:{value};" for i, value in enumerate(values))


CSS = f"""
:root{{{LIGHT}{_colours(palette.LIGHT)}}}
@media screen and (prefers-color-scheme:dark){{:root{{{DARK}{_colours(palette.DARK)}}}}}
{"".join(f".k{i}{{fill:var(--k{i})}}" for i in range(palette.N_COLOURS))}
*{{box-sizing:border-box}}
html{{scroll-behavior:smooth;-webkit-text-size-adjust:100%;scroll-padding-top:3.4rem}}
@media (prefers-reduced-motion:reduce){{html{{scroll-behavior:auto}}}}
body{{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:break-word;hyphens:none}}
.page{{max-width:76rem;margin:0 auto;padding:0 1.25rem}}
header.page{{padding-top:2.2rem}} main.page{{padding-bottom:1rem}} footer.page{{padding-bottom:3rem}}
h1{{font-size:1.9rem;line-height:1.2;margin:0;letter-spacing:-.015em}}
.method{{margin:.3rem 0 0;color:var(--soft)}}
.verdict{{margin:1.3rem 0 0;padding:1.1rem 1.35rem;background:var(--card);border:1px solid var(--line);
border-left:5px solid var(--accent);border-radius:10px}}
.verdict p{{margin:0;max-width:62rem;font-size:1.22rem;line-height:1.5}}
.verdict p+p{{margin-top:.55rem;font-size:1.05rem;color:var(--soft)}}
.figures{{display:flex;flex-wrap:wrap;gap:.3rem 1.8rem;margin:.9rem 0 0;font-size:.92rem}}
.figures div{{display:flex;gap:.45rem}} .figures dt{{color:var(--soft)}} .figures dd{{margin:0;font-weight:600}}
.defs{{position:absolute}}
nav{{position:sticky;top:0;z-index:5;margin-top:1rem;background:color-mix(in srgb,var(--bg) 94%,transparent);
backdrop-filter:blur(6px);border-bottom:1px solid var(--line);font-size:.9rem}}
nav ul{{display:flex;gap:0 1.3rem;list-style:none;overflow-x:auto;scrollbar-width:none}}
nav ul::-webkit-scrollbar{{display:none}}
nav a{{color:var(--soft);text-decoration:none;display:inline-block;padding:.65rem 0;white-space:nowrap}}
nav a:hover,nav a:focus-visible{{color:var(--accent);text-decoration:underline}}
section{{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.3rem 1.5rem 1.5rem;
margin-top:1.1rem}}
h2{{font-size:1.2rem;margin:0 0 .7rem;letter-spacing:-.005em}}
h3{{font-size:1rem;margin:1.4rem 0 .5rem}}
p{{margin:.5rem 0;max-width:52rem}}
.note{{color:var(--soft);font-size:.88rem}}
code,pre{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.86em}}
.board{{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:.9rem;align-items:stretch}}
.board.few{{grid-template-rows:repeat(var(--beside),auto) 1fr}}
.map{{grid-column:span 2;grid-row:span var(--rows);margin:0;min-width:0}}
figcaption{{color:var(--soft);font-size:.88rem;margin-top:.5rem}}
.card{{border:1px solid var(--line);border-radius:10px;padding:.75rem .9rem .85rem;min-width:0;font-size:.92rem}}
.card h3{{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:0 .6rem;margin:0 0 .35rem;
font-size:1rem;font-weight:600}}
.card h3 .quiet{{font-size:.85rem;font-weight:400;flex-basis:100%}}
.card .bar{{height:.35rem}}
.card p{{margin:.4rem 0 0;line-height:1.4}} .card>p.quiet{{font-size:.84rem}}
.pick{{font:inherit;color:inherit;background:none;border:1px solid transparent;border-radius:99px;cursor:pointer;
padding:.1rem .6rem .1rem .45rem;margin:0 0 0 -.45rem;white-space:nowrap}}
.pick:hover{{background:var(--fill)}} .pick[aria-pressed=true]{{border-color:var(--accent);background:var(--fill)}}
.traits{{list-style:none;margin:.55rem 0 0;padding:0;line-height:1.4}}
.traits li{{margin-top:.22rem}} .traits strong{{font-weight:600;overflow-wrap:anywhere}}
.way{{display:inline-block;width:2.3em;color:var(--soft)}}
.traits .quiet{{display:block;font-size:.84rem;line-height:1.3}}
.typical .name{{overflow-wrap:anywhere}}
.scroll{{overflow-x:auto;margin:.6rem 0;max-width:56rem}} .scroll:has(.matrix){{max-width:none}}
table{{border-collapse:collapse;width:100%;font-size:.92rem;overflow-wrap:normal}}
.id{{display:block;min-width:5rem;max-width:24rem;overflow-wrap:break-word}}
th,td{{text-align:left;padding:.42rem 1.1rem .42rem 0;border-bottom:1px solid var(--line);vertical-align:middle}}
th{{font-weight:600;color:var(--soft);font-size:.84rem;vertical-align:bottom}}
tbody th{{font-weight:400;color:inherit;font-size:inherit;vertical-align:middle}}
tr:last-child>*{{border-bottom:0}}
.num{{text-align:right}} td.num,.matrix td{{white-space:nowrap}}
tr>:last-child{{padding-right:0}}
td.wide{{width:34%;min-width:4.5rem}}
section>:last-child,section>:last-child>:last-child{{margin-bottom:0}}
.nowrap{{white-space:nowrap}}
.quiet{{color:var(--soft)}}
.neg{{color:var(--bad)}}
.swatch{{width:.95em;height:.95em;vertical-align:-.08em;margin-right:.4em}}
.bar{{display:block;width:100%;height:.85rem;border-radius:3px;background:var(--fill);overflow:hidden}}
.bar .plain{{fill:var(--bar)}}
.bars{{list-style:none;margin:.4rem 0 0;padding:0;max-width:52rem}}
.bars li{{display:grid;grid-template-columns:minmax(5rem,14rem) minmax(0,1fr) 4.6rem;gap:.8rem;align-items:center;
padding:.22rem 0}}
.bars .name{{overflow-wrap:anywhere}} .bars .figure{{text-align:right}}
.chart{{display:block;width:100%;height:auto;margin:.6rem 0 0;max-width:48rem}}
.chart text{{font-size:11px;fill:var(--soft);font-family:inherit}}
.chart .named{{font-weight:700;fill:var(--ink)}}
.chart .grid{{stroke:var(--line);fill:none}} .chart .zero{{stroke:var(--soft);fill:none}}
.chart .mean{{stroke:var(--ink);stroke-dasharray:4 4;fill:none}}
.chart .line{{stroke:var(--accent);stroke-width:2;fill:none;stroke-linejoin:round}}
.chart .dot{{fill:var(--accent)}} .chart .chosen{{fill:var(--card);stroke:var(--accent);stroke-width:3}}
.frame{{position:relative}} .pinned{{position:sticky;top:3.6rem}}
.chart.scatter{{max-width:none;margin:0}}
.scatter,.small-map{{background:var(--bg);border:1px solid var(--line);border-radius:8px;touch-action:manipulation}}
.scatter use,.small-map use{{fill-opacity:.82;stroke:var(--card);stroke-width:.5}}
.scatter.picked use{{fill-opacity:.1}} .scatter.picked use.on{{fill-opacity:.95}}
.scatter .ring{{fill:none;stroke:var(--ink);stroke-width:1.8}}
.chart .tag{{font-size:17px;font-weight:700;fill:var(--ink);stroke:var(--card);stroke-width:4.5px;stroke-linejoin:round;
paint-order:stroke;pointer-events:none}}
.small-maps{{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:.9rem;margin-top:1rem}}
.small-maps figure{{margin:0;min-width:0}} .small-map{{display:block;width:100%;height:auto}}
.small-maps .id{{overflow-wrap:anywhere}}
.scatter:focus-visible,button:focus-visible,summary:focus-visible,a:focus-visible{{outline:2px solid var(--accent);
outline-offset:2px}}
.tip{{position:absolute;z-index:2;pointer-events:none;background:var(--ink);color:var(--card);border-radius:6px;
padding:.4rem .6rem;font-size:.82rem;line-height:1.4;white-space:pre-line;width:max-content;max-width:16rem;
overflow-wrap:anywhere}}
.tip::first-line{{font-weight:600}}
dl.pairs{{display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);gap:.2rem 1.2rem;margin:.5rem 0;
font-size:.92rem}}
dl.pairs dt{{color:var(--soft)}} dl.pairs dd{{margin:0;overflow-wrap:anywhere}}
details{{margin-top:.7rem}}
summary{{cursor:pointer;color:var(--accent);font-size:.92rem}}
.folded{{padding:0}} .folded>details{{margin:0}} .folded .inner{{padding:0 1.5rem 1.4rem}}
.folded>details>summary{{padding:.85rem 1.5rem}} .folded summary h2{{display:inline;font-size:1.05rem;color:var(--ink)}}
.folded>details[open]>summary h2{{font-size:1.2rem}}
.code{{position:relative;margin:.5rem 0}}
pre{{background:var(--fill);border-radius:8px;padding:.85rem 1rem;margin:0;white-space:pre-wrap;overflow-wrap:anywhere}}
.copy{{font:inherit;font-size:.78rem;position:absolute;top:.45rem;right:.45rem;color:var(--soft);cursor:pointer;
background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.15rem .6rem}}
.code pre{{padding-right:5rem}}
.warnings{{list-style:none;margin:0;padding:0}}
.warnings li{{background:var(--warn);border-left:3px solid var(--warnline);border-radius:4px;padding:.5rem .8rem;
margin-top:.5rem}}
.matrix{{width:auto;min-width:50%}}
.matrix td{{text-align:right;padding:.35rem .6rem}} .matrix th[scope=col]{{text-align:right;padding:.35rem .6rem}}
.matrix th[scope=col]:first-child{{text-align:left;padding-left:0}}
.matrix td{{background:color-mix(in srgb,var(--bar) var(--heat,0%),transparent)}}
footer{{color:var(--soft);font-size:.84rem;margin-top:.6rem}}
@media (max-width:72rem){{
.board{{grid-template-columns:repeat(3,minmax(0,1fr))}}
}}
@media (max-width:54rem){{
.board.few{{grid-template-rows:none}}
.board{{grid-template-columns:repeat(2,minmax(0,1fr))}} .map{{grid-row:auto}}
.pinned{{position:static}}
}}
@media (max-width:40rem){{
body{{font-size:16px}} .page{{padding-left:.8rem;padding-right:.8rem}} header.page{{padding-top:1.3rem}}
section{{padding:1.05rem .95rem 1.15rem;border-radius:10px}} .folded{{padding:0}}
.folded>details>summary{{padding:.8rem .95rem}} .folded .inner{{padding:0 .95rem 1.1rem}}
h1{{font-size:1.5rem}} .verdict{{padding:.9rem 1rem}} .verdict p{{font-size:1.08rem}} .verdict p+p{{font-size:1rem}}
.figures{{gap:.2rem 1.2rem}} .card h3 .quiet{{flex-basis:auto}}
.board{{grid-template-columns:minmax(0,1fr)}} .map{{grid-column:auto}} .pinned{{position:static}}
.chart text{{font-size:19px}} .chart .tag{{font-size:26px;stroke-width:7px}}
.bars li{{grid-template-columns:minmax(0,1fr) 3.6rem;gap:.1rem .6rem}} .bars .name{{grid-column:1/3}}
th,td{{padding-right:.6rem}} .scatter use{{stroke-width:.3}}
td.wide{{min-width:2.4rem;width:20%}} .id{{min-width:5.2rem}}
.small-maps{{grid-template-columns:repeat(2,minmax(0,1fr));gap:.6rem}} .small-maps .id{{min-width:0}}
.code{{display:flex;flex-direction:column-reverse}} .code pre{{padding-right:1rem}}
.copy{{position:static;align-self:flex-end;margin-bottom:.35rem;padding:.3rem .8rem}}
dl.pairs{{grid-template-columns:minmax(0,1fr);gap:0}} dl.pairs dd{{margin-bottom:.45rem}}
}}
@media print{{
.pinned{{position:static}}
@page{{margin:14mm}}
body{{background:#fff;font-size:10pt}} .page{{max-width:none;padding:0!important}}
nav,.copy,.tip,.screen{{display:none}}
section,.card,.verdict,figure{{break-inside:avoid;border-color:#ccc}} .code pre{{padding-right:1rem}}
.board{{grid-template-columns:repeat(3,minmax(0,1fr));grid-template-rows:none!important}}
.map{{grid-column:1/-1;grid-row:auto;width:82%}}
section.long{{break-inside:auto}} h2,h3,summary{{break-after:avoid}}
.bar,pre,.matrix td,.warnings li{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
.scroll{{overflow:visible}} .matrix{{font-size:8.5pt}} .chart{{max-width:34rem}}
details::details-content{{content-visibility:visible;display:block;height:auto}}
}}
"""

JS = r"""
(function () {
  "use strict";
  var svg = document.querySelector(".scatter"), all = document.querySelectorAll("details");
  function unfold() { all.forEach(function (one) { one.dataset.was = one.open ? "1" : ""; one.open = true; }); }
  function fold() { all.forEach(function (one) { one.open = one.dataset.was === "1"; }); }
  window.addEventListener("beforeprint", unfold);
  window.addEventListener("afterprint", fold);

  function open_target() {  // a link leads to what is folded up, too
    var one = location.hash && document.getElementById(location.hash.slice(1));
    one = one && one.querySelector("details");
    if (one) { one.open = true; }
  }
  window.addEventListener("hashchange", open_target);
  open_target();

  document.querySelectorAll(".copy").forEach(function (button) {
    button.addEventListener("click", function () {
      var pre = button.parentNode.querySelector("pre");
      function answer(text) {
        button.textContent = text;
        setTimeout(function () { button.textContent = "Copy"; }, 1600);
      }
      function old() {
        var range = document.createRange(), chosen = window.getSelection();
        range.selectNodeContents(pre);
        chosen.removeAllRanges();
        chosen.addRange(range);
        answer(document.execCommand("copy") ? "Copied" : "Press Ctrl+C");
      }
      if (navigator.clipboard && window.isSecureContext) {
        navigator.clipboard.writeText(pre.textContent).then(function () { answer("Copied"); }, old);
      } else { old(); }
    });
  });

  if (!svg) { return; }
  var frame = svg.parentNode, tip = frame.querySelector(".tip"), group = svg.querySelector(".points");
  var ring = svg.querySelector(".ring"), scale = parseFloat(group.dataset.scale), here = null;
  var points = Array.prototype.map.call(group.children, function (mark) {
    var title = mark.querySelector("title"), text = title.textContent;
    title.remove();  // the tooltip takes its place
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", text);
    return {mark: mark, text: text, x: mark.x.baseVal.value * scale, y: mark.y.baseVal.value * scale};
  });
  var order = points.map(function (_, i) { return i; }).sort(function (a, b) { return points[a].x - points[b].x; });

  function hide() {
    here = null;
    tip.hidden = true;
    ring.setAttribute("visibility", "hidden");
  }
  function show(point) {
    if (here !== point) {
      here = point;
      ring.setAttribute("cx", point.x);
      ring.setAttribute("cy", point.y);
      ring.setAttribute("visibility", "visible");
      tip.textContent = point.text;
      tip.hidden = false;
    }
    var box = svg.getBoundingClientRect(), outer = frame.getBoundingClientRect();
    var unit = box.width / svg.viewBox.baseVal.width;
    var x = box.left - outer.left + point.x * unit, y = box.top - outer.top + point.y * unit;
    tip.style.left = Math.max(0, Math.min(x + 10, outer.width - tip.offsetWidth)) + "px";
    tip.style.top = (y > tip.offsetHeight + 14 ? y - tip.offsetHeight - 10 : y + 12) + "px";
  }
  function nearest(event) {
    var box = svg.getBoundingClientRect(), unit = svg.viewBox.baseVal.width / box.width;
    var x = (event.clientX - box.left) * unit, y = (event.clientY - box.top) * unit;
    var limit = (event.pointerType === "mouse" ? 12 : 24) * unit, least = limit * limit, nearby = null;
    points.forEach(function (point) {
      if (svg.classList.contains("picked") && !point.mark.classList.contains("on")) { return; }
      var distance = (point.x - x) * (point.x - x) + (point.y - y) * (point.y - y);
      if (distance < least) { least = distance; nearby = point; }
    });
    return nearby;
  }
  function follow(event) {
    var point = nearest(event);
    if (point) { show(point); } else { hide(); }
  }
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse") { hide(); } });
  svg.addEventListener("focus", function () {
    if (!here && points.length && svg.matches(":focus-visible")) { show(points[order[0]]); }
  });
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", function (event) {
    var by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (event.key === "Escape") { hide(); }
    if (!by || !points.length) { return; }
    event.preventDefault();
    var at = here ? order.indexOf(points.indexOf(here)) : -by;
    show(points[order[(at + by + order.length) % order.length]]);
  });

  document.querySelectorAll(".pick").forEach(function (button) {
    button.addEventListener("click", function () {
      var on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      var chosen = Array.prototype.map.call(document.querySelectorAll(".pick[aria-pressed=true]"),
        function (other) { return other.dataset.c; });
      svg.classList.toggle("picked", chosen.length > 0);
      points.forEach(function (point) {
        point.mark.classList.toggle("on", chosen.indexOf(point.mark.dataset.c) >= 0);
      });
    });
  });
})();
"""


def policy() -> str:
    """Return the rule that keeps the page from loading anything, and from running any script but the one in it."""
    digest = base64.b64encode(hashlib.sha256(JS.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"

"""Style sheet and script of the page, written into it."""

import base64
import hashlib

LIGHT = """
--bg:#f6f7f8;--card:#fff;--ink:#1c232e;--soft:#5a6573;--line:#e2e6ea;--fill:#eef1f4;--accent:#1f6a91;
--bar:#5b9dbf;--bad:#b3452f;--warn:#fdf3e3;--warnline:#e3b765;
--k0:#0072b2;--k1:#e69f00;--k2:#009e73;--k3:#cc79a7;--k4:#56b4e9;--k5:#d55e00;--k6:#6b6b6b;color-scheme:light;
"""
DARK = """
--bg:#12151a;--card:#1a1f26;--ink:#e4e8ed;--soft:#9ba6b4;--line:#2b323c;--fill:#242b34;--accent:#83c1e2;
--bar:#4d8fb3;--bad:#ef8b74;--warn:#2e2718;--warnline:#8a6a2c;
--k0:#3f93d2;--k1:#eeb03a;--k2:#2fb98f;--k3:#dc95bc;--k4:#93d3f7;--k5:#f07f3c;--k6:#a3a9b2;color-scheme:dark;
"""

CSS = f"""
:root{{{LIGHT}}}
@media screen and (prefers-color-scheme:dark){{:root{{{DARK}}}}}
*{{box-sizing:border-box}}
html{{scroll-behavior:smooth;-webkit-text-size-adjust:100%}}
@media (prefers-reduced-motion:reduce){{html{{scroll-behavior:auto}}}}
body{{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}}
.page{{max-width:54rem;margin:0 auto;padding:2rem 1rem 4rem}}
header h1{{font-size:1.75rem;line-height:1.2;margin:0 0 .4rem;letter-spacing:-.01em}}
header p{{margin:0;color:var(--soft)}}
.defs{{position:absolute}}
.tiles{{display:grid;grid-template-columns:repeat(auto-fit,minmax(6.4rem,1fr));gap:.6rem;margin:1.4rem 0 0;padding:0}}
.tiles div{{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.6rem .75rem}}
.tiles dt{{color:var(--soft);font-size:.8rem}}
.tiles dd{{margin:0;font-size:1.3rem;font-weight:600;line-height:1.3;overflow-wrap:normal}}
.tiles dd.long{{font-size:1rem;line-height:1.7}}
nav{{margin:1.2rem 0 0;font-size:.85rem}}
nav ul{{display:flex;flex-wrap:wrap;gap:.1rem .8rem;margin:0;padding:0;list-style:none}}
nav a{{color:var(--soft);text-decoration:none;display:inline-block;padding:.2rem 0}}
nav a:hover,nav a:focus-visible{{color:var(--accent);text-decoration:underline}}
section{{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.25rem 1.4rem 1.4rem;
margin-top:1rem;scroll-margin-top:1rem}}
h2{{font-size:1.15rem;margin:0 0 .6rem;letter-spacing:-.005em}}
h3{{font-size:.95rem;margin:1.2rem 0 .5rem}}
p{{margin:.5rem 0;max-width:44rem}}
.note{{color:var(--soft);font-size:.875rem}}
code,pre{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.86em}}
.scroll{{overflow-x:auto;margin:.6rem 0}}
table{{border-collapse:collapse;width:100%;font-size:.92rem;overflow-wrap:normal}}
.id{{display:block;min-width:5rem;max-width:24rem;overflow-wrap:anywhere}}
th,td{{text-align:left;padding:.4rem 1.1rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:middle}}
th{{font-weight:600;color:var(--soft);font-size:.82rem;vertical-align:bottom}}
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
.bar .plain{{fill:var(--bar)}} .bar .low{{fill:var(--bad)}}
.bars{{list-style:none;margin:.4rem 0 0;padding:0}}
.bars li{{display:grid;grid-template-columns:minmax(5rem,12rem) minmax(0,1fr) 4.6rem;gap:.8rem;align-items:center;
padding:.22rem 0}}
.bars .figure{{text-align:right}}
.k0{{fill:var(--k0)}}.k1{{fill:var(--k1)}}.k2{{fill:var(--k2)}}.k3{{fill:var(--k3)}}.k4{{fill:var(--k4)}}
.k5{{fill:var(--k5)}}.k6{{fill:var(--k6)}}
.chart{{display:block;width:100%;height:auto;margin:.6rem 0 0}}
.chart text{{font-size:10.5px;fill:var(--soft);font-family:inherit}}
.chart .grid{{stroke:var(--line);fill:none}} .chart .zero{{stroke:var(--soft);fill:none}}
.chart .mean{{stroke:var(--ink);stroke-dasharray:4 4;fill:none}}
.chart .line{{stroke:var(--accent);stroke-width:2;fill:none;stroke-linejoin:round}}
.chart .dot{{fill:var(--accent)}}
.frame{{position:relative}}
.scatter{{background:var(--bg);border:1px solid var(--line);border-radius:8px;touch-action:manipulation}}
.scatter use{{fill-opacity:.82;stroke:var(--card);stroke-width:.5}}
.scatter.picked use{{fill-opacity:.1}} .scatter.picked use.on{{fill-opacity:.95}}
.scatter .ring{{fill:none;stroke:var(--ink);stroke-width:1.8}}
.scatter:focus-visible,button:focus-visible,summary:focus-visible,a:focus-visible{{outline:2px solid var(--accent);
outline-offset:2px}}
.tip{{position:absolute;z-index:2;pointer-events:none;background:var(--ink);color:var(--card);border-radius:6px;
padding:.4rem .6rem;font-size:.82rem;line-height:1.4;white-space:pre-line;width:max-content;max-width:16rem}}
.tip::first-line{{font-weight:600}}
.legend{{display:flex;flex-wrap:wrap;gap:.3rem;margin:.7rem 0 0;padding:0;list-style:none}}
.legend button{{font:inherit;font-size:.85rem;color:inherit;background:none;border:1px solid var(--line);
border-radius:99px;padding:.15rem .7rem;cursor:pointer}}
.legend button[aria-pressed=true]{{border-color:var(--accent);background:var(--fill)}}
.chips{{display:flex;flex-wrap:wrap;gap:.3rem;margin:0;padding:0;list-style:none}}
.chips li{{background:var(--fill);border-radius:5px;padding:.05rem .5rem;overflow-wrap:anywhere}}
dl.pairs{{display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);gap:.2rem 1.2rem;margin:.5rem 0;
font-size:.92rem}}
dl.pairs dt{{color:var(--soft)}} dl.pairs dd{{margin:0}}
details{{margin-top:.7rem}}
summary{{cursor:pointer;color:var(--accent);font-size:.9rem}}
.code{{position:relative;margin:.5rem 0}}
pre{{background:var(--fill);border-radius:8px;padding:.85rem 1rem;margin:0;white-space:pre-wrap}}
.copy{{font:inherit;font-size:.78rem;position:absolute;top:.45rem;right:.45rem;color:var(--soft);cursor:pointer;
background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.15rem .6rem}}
.code pre{{padding-right:5rem}}
.warnings{{list-style:none;margin:0;padding:0}}
.warnings li{{background:var(--warn);border-left:3px solid var(--warnline);border-radius:4px;padding:.5rem .8rem;
margin-top:.5rem}}
.matrix td{{text-align:right;padding:.35rem .5rem}} .matrix th[scope=col]{{text-align:right;padding:.35rem .5rem}}
.matrix td{{background:color-mix(in srgb,var(--bar) var(--heat,0%),transparent)}}
footer{{color:var(--soft);font-size:.82rem;margin-top:1.4rem}}
@media (max-width:40rem){{
body{{font-size:15px}} .page{{padding:1.2rem .75rem 3rem}} section{{padding:1rem .9rem 1.1rem;border-radius:10px}}
header h1{{font-size:1.4rem}} .tiles{{grid-template-columns:1fr 1fr}} .tiles dd{{font-size:1.1rem}}
.chart text{{font-size:19px}} .bars li{{grid-template-columns:7.2rem minmax(0,1fr) 3.4rem;gap:.5rem}}
th,td{{padding-right:.6rem}} .scatter use{{stroke-width:.3}}
td.wide{{min-width:2.4rem}} td.num .quiet{{display:block;font-size:.8rem}} .id{{min-width:5.2rem}}
.code{{display:flex;flex-direction:column-reverse}} .code pre{{padding-right:1rem}}
.copy{{position:static;align-self:flex-end;margin-bottom:.35rem;padding:.3rem .8rem}}
dl.pairs{{grid-template-columns:minmax(0,8.5rem) minmax(0,1fr)}}
}}
@media print{{
body{{background:#fff;font-size:10.5pt}} .page{{max-width:none;padding:0}} nav,.copy,.tip{{display:none}}
section,.tiles div{{break-inside:avoid;border-color:#ccc}} .code pre{{padding-right:1rem}}
section.long{{break-inside:auto}} h2,h3{{break-after:avoid}} .bar,.chips li,pre,.matrix td,.warnings li{{
print-color-adjust:exact;-webkit-print-color-adjust:exact}}
.scroll{{overflow:visible}}
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

  document.querySelectorAll(".legend button").forEach(function (button) {
    button.addEventListener("click", function () {
      var on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      var chosen = Array.prototype.map.call(document.querySelectorAll(".legend button[aria-pressed=true]"),
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

"""The report in a browser: without a network, on a phone, in the dark and on paper, and it answers the mouse."""

import os
import shutil

import numpy as np
import pandas as pd
import pytest

from kernelweave import KernelKMeans, MultiViewKernelKMeans
from kernelweave.evaluation.report.page import FOLDED, HEADINGS
from kernelweave.report import write_report
from tests.estimators.discovery import blobs

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FOUND = os.environ.get("KERNELWEAVE_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
if FOUND is None:
    pytest.skip(f"no Chromium: none of {', '.join(BROWSERS)} on PATH, no KERNELWEAVE_CHROMIUM", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")

X, Y = blobs(spread=3.0)
NASTY = "<script>alert(1)</script>"
IDS = [NASTY, "\"quotes\" & 'quotes'", "x" * 200, *(f"sample {i}" for i in range(len(X) - 3))]
SHOWN = [name if len(name) <= 80 else f"{'x' * 39}…{'x' * 39}" for name in IDS]
PHONE = {"width": 390, "height": 844}
SCREEN = {"width": 1280, "height": 720}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=FOUND)
        yield running
        running.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A report with every section, long names, and two views."""
    views = {"left": X[:, :2], "a view with a rather long name": X[:, 2:]}
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(views)
    classes = np.array([f"class {i}" for i in range(40)])[np.arange(len(X)) % 40]
    return write_report(
        tmp_path_factory.mktemp("report") / "report.html",
        model,
        views,
        ids=IDS,
        labels_true=classes,
        command="kernelweave --some-long-option " * 8,
        warnings=[NASTY],
        sources={"left": "a/long/path/without/any/spaces/" * 4},
    )


class Pages:
    """A page for each kind of device, which tests take in turns: a new context costs a second of a processor."""

    def __init__(self, browser):
        self.browser = browser
        self.kept = {}
        self.troubles = []
        self.requests = []

    def page(self, device):
        """Return the page of a device, with what it showed last: to go through an empty page costs as much again."""
        key = repr(sorted(device.items()))
        if key not in self.kept:
            self.kept[key] = self.browser.new_context(offline=True, **device).new_page()
            self._watch(self.kept[key])
        return self.kept[key]

    def _watch(self, page):
        page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: (self.troubles.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))


@pytest.fixture(scope="module")
def pages(browser):
    kept = Pages(browser)
    yield kept
    for page in kept.kept.values():
        page.context.close()


@pytest.fixture
def opened(pages, path):
    """Opens a report without a network; at the end, nothing went wrong and nothing was loaded."""
    pages.troubles.clear()
    pages.requests.clear()

    def open_page(file=path, viewport=SCREEN, color_scheme="light", **device):
        page = pages.page(device)
        page.set_viewport_size(viewport)
        page.emulate_media(media="screen", color_scheme=color_scheme)
        page.mouse.move(0, 0)
        page.goto(file.as_uri())
        assert page.evaluate("[window.scrollX, window.scrollY, location.hash]") == [0, 0, ""]
        return page

    yield open_page
    for page in pages.kept.values():
        page.evaluate("0")  # what it has said by now is heard
    assert pages.troubles == []
    assert all(url.startswith("file:") and url.endswith(".html") for url in pages.requests), pages.requests
    assert pages.requests


def marks(page):
    return page.locator(".scatter .points use")


def point_at(page, mark):
    """Move the mouse to the middle of a mark."""
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def scrolls_sideways(page):
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def test_every_section_is_seen_and_nothing_is_loaded_or_complained_of(opened):
    page = opened()
    assert page.title()
    for name, heading in (HEADINGS | FOLDED).items():
        if name not in ("counts", "edges"):  # several numbers, and graphs
            section = page.locator(f"section#{name}")
            assert section.is_visible()
            assert section.locator("h2").inner_text() == heading
            assert section.bounding_box()["height"] > 40
    assert marks(page).count() == len(X)


def test_the_verdict_comes_first_in_two_sentences_of_large_type(opened):
    page = opened()
    first, second = page.locator(".verdict p").all()
    assert first.inner_text().startswith("3 clusters in 60 samples stand clearly apart")
    assert second.inner_text().startswith("Distrust what 1 warning")
    size, usual = (
        float(page.evaluate("one => getComputedStyle(document.querySelector(one)).fontSize", one)[:-2])
        for one in (".verdict p", "main p")
    )
    assert size > 1.15 * usual
    tops = [page.locator(one).bounding_box()["y"] for one in ("h1", ".verdict", "nav", "section#clusters", "#samples")]
    assert tops == sorted(tops)


def test_cards_stand_beside_the_map_and_say_what_sets_clusters_apart(opened):
    page = opened(viewport={"width": 1280, "height": 900})
    drawn = page.locator("#map").bounding_box()
    cards = page.locator(".card")
    assert cards.count() == 3
    for card in cards.all():
        box = card.bounding_box()
        assert box["x"] >= drawn["x"] + drawn["width"]
        assert card.locator(".traits li").count() >= 1
        assert "Typical" in card.inner_text()
    phone = opened(viewport=PHONE, is_mobile=True)
    assert phone.locator(".card").first.bounding_box()["y"] > phone.locator("#map").bounding_box()["y"] + 100


def test_the_number_of_every_cluster_stands_at_the_median_of_its_samples(opened):
    page = opened()
    found = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.scatter .tag')].map(tag => {
            const middle = box => [box.left + box.width / 2, box.top + box.height / 2];
            const median = values => { values.sort((a, b) => a - b); const n = values.length;
                return (values[(n - 1) >> 1] + values[n >> 1]) / 2; };
            const marks = [...document.querySelectorAll(`.points use[data-c="${tag.dataset.c}"]`)]
                .map(mark => middle(mark.getBoundingClientRect()));
            const at = middle(tag.getBoundingClientRect());
            const style = getComputedStyle(tag);
            return [tag.textContent, [at[0] - median(marks.map(p => p[0])), at[1] - median(marks.map(p => p[1])),
                style.paintOrder.startsWith('stroke') && parseFloat(style.strokeWidth) >= 3]];
        }))"""
    )
    assert sorted(found) == ["0", "1", "2"]
    for across, up, halo in found.values():
        assert abs(across) < 4
        assert abs(up) < 6
        assert halo


def test_every_view_has_a_small_map(opened):
    page = opened()
    assert page.locator("#views .small-map").count() == 2
    assert page.locator("#views .small-map").first.locator("use").count() == len(X)


def test_what_is_folded_opens_by_a_press_and_by_its_link(opened):
    page = opened()
    for name in FOLDED:
        assert not page.locator(f"section#{name} .inner").is_visible()
    page.locator("section#method summary").first.click()
    assert page.locator("section#method .inner").is_visible()
    page.locator('nav a[href="#repeat"]').click()
    playwright.expect(page.locator("section#repeat .inner")).to_be_visible()


def test_the_menu_stays_in_sight(opened):
    for options in ({}, {"viewport": PHONE, "is_mobile": True}):
        page = opened(**options)
        page.evaluate("window.scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
        assert abs(page.locator("nav").bounding_box()["y"]) < 1


def test_no_word_is_broken_on_a_phone(opened, tmp_path):
    """A word that is on two lines has two boxes; ids and paths without spaces may break, words may not."""
    columns = ["alcohol", "flavanoids", "proline", "elongation_of_the_rete_ridges_and_damage"]
    table = pd.DataFrame(X, columns=columns, index=[f"sample {i}" for i in range(len(X))])
    file = write_report(tmp_path / "words.html", KernelKMeans(3, kernel="linear", random_state=0).fit(table), table)
    page = opened(file, viewport=PHONE, is_mobile=True)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    broken = page.evaluate(
        """() => { const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                const node = walker.currentNode, range = document.createRange();
                if (node.parentNode.closest('script, style, svg, pre')) { continue; }
                for (const word of node.textContent.matchAll(/[A-Za-z]+/g)) {
                    range.setStart(node, word.index);
                    range.setEnd(node, word.index + word[0].length);
                    if (new Set([...range.getClientRects()].map(box => box.top)).size > 1) { found.push(word[0]); }
                }
            }
            return found; }"""
    )
    assert broken == []


def test_charts_and_tables_stay_inside_their_section(opened):
    for width in (390, 768, 1400):
        page = opened(viewport={"width": width, "height": 900})
        outside = page.evaluate(
            """() => [...document.querySelectorAll('section')].flatMap(section => {
                const edge = section.getBoundingClientRect();
                return [...section.querySelectorAll("p, .chart, .scroll, .bars, .code, .card, figure, dl")].filter(
                    part => {
                    const box = part.getBoundingClientRect();
                    return box.left < edge.left || box.right > edge.right + 0.5;
                }).map(part => part.outerHTML.slice(0, 80));
            })"""
        )
        assert outside == []


def test_text_of_a_chart_stays_inside_it_and_lines_do_not_overlap(opened):
    for width in (390, 1200):
        page = opened(viewport={"width": width, "height": 900})
        bad = page.evaluate(
            """() => [...document.querySelectorAll('svg.chart')].flatMap(svg => {
                const edge = svg.getBoundingClientRect();
                const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent,
                    text.getBoundingClientRect()]);
                const out = boxes.filter(([, box]) => box.left < edge.left - 1 || box.right > edge.right + 1
                    || box.top < edge.top - 1 || box.bottom > edge.bottom + 1);
                const over = boxes.flatMap(([a, one], i) => boxes.slice(i + 1).filter(([, other]) =>
                    one.left < other.right && other.left < one.right && one.top + 2 < other.bottom
                    && other.top + 2 < one.bottom).map(([b]) => a + ' over ' + b));
                return [...out.map(([text]) => text + ' outside'), ...over];
            })"""
        )
        assert bad == [], width


def test_pointing_at_a_sample_shows_its_name_cluster_and_silhouette(opened):
    page = opened()
    tip = page.locator(".tip")
    assert tip.is_hidden()
    for i in (0, 7, 23):
        mark = marks(page).nth(i)
        point_at(page, mark)
        assert tip.is_visible()
        assert tip.inner_text().split("\n") == mark.get_attribute("aria-label").split("\n")
        name, cluster, silhouette = tip.inner_text().split("\n")
        assert name in IDS
        assert cluster == f"cluster {mark.get_attribute('data-c')}"
        assert silhouette.startswith("model silhouette ")
    page.mouse.move(1, 1)
    assert tip.is_hidden()


def test_a_name_that_looks_like_code_is_shown_as_it_is(opened):
    page = opened()
    names = [label.split("\n")[0] for label in marks(page).evaluate_all("all => all.map(one => one.ariaLabel)")]
    assert sorted(names) == sorted(SHOWN)
    point_at(page, marks(page).nth(names.index(NASTY)))
    assert NASTY in page.locator(".tip").inner_text()
    assert page.locator("script").count() == 1
    assert page.locator("#warnings li").inner_text() == NASTY


def test_names_are_there_without_scripts(opened):
    page = opened(java_script_enabled=False)
    titles = page.locator(".scatter use title")
    assert titles.count() == len(X)
    assert titles.first.text_content().split("\n")[0] in SHOWN
    assert page.locator(".tip").is_hidden()


def test_the_arrow_keys_go_from_sample_to_sample(opened):
    page = opened()
    page.locator(".pick").first.focus()
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.classList.contains('scatter')")
    tip = page.locator(".tip")
    assert tip.is_visible()
    tips = {tip.inner_text()}
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        tips.add(tip.inner_text())
    assert len(tips) == 6
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_a_tap_near_a_sample_shows_its_name(opened):
    page = opened(viewport=PHONE, has_touch=True, is_mobile=True)
    mark = marks(page).nth(3)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2 + 1, box["y"] + box["height"] / 2)
    tip = page.locator(".tip")
    assert tip.is_visible()
    assert tip.inner_text().split("\n")[0] in SHOWN
    inside = tip.bounding_box()
    assert inside["x"] >= 0
    assert inside["x"] + inside["width"] <= PHONE["width"]


def test_the_head_of_a_card_picks_out_its_cluster(opened):
    page = opened()
    page.locator(".pick").nth(1).click()
    on = marks(page).evaluate_all("all => all.filter(one => one.classList.contains('on')).map(one => one.dataset.c)")
    assert set(on) == {"1"}
    page.locator(".pick").nth(1).click()
    assert page.locator(".scatter.picked").count() == 0


def test_code_and_command_can_be_copied(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.locator("section#repeat summary").click()
    buttons = page.locator("#repeat .copy")
    assert buttons.count() == 2
    code = page.locator("#repeat pre").nth(1).inner_text()
    buttons.nth(1).click()
    playwright.expect(buttons.nth(1)).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").strip() == code.strip()


def test_a_phone_does_not_scroll_sideways(opened, tmp_path):
    assert not scrolls_sideways(opened(viewport=PHONE, is_mobile=True))
    assert not scrolls_sideways(opened(viewport={"width": 320, "height": 600}))
    many = KernelKMeans(30, n_init=1, random_state=0).fit(X)
    file = write_report(tmp_path / "many.html", many, 1e9 * X, ids=["y" * 500] * len(X), title="z" * 300)
    assert not scrolls_sideways(opened(file, viewport=PHONE, is_mobile=True))


def test_the_dark_scheme_changes_the_colours_and_keeps_contrast(opened):
    result = {}
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        result[scheme] = page.evaluate(
            "['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number))"
        )
    assert result["light"] != result["dark"]
    for (ground, ink), lighter in ((result["light"], 0), (result["dark"], 1)):
        brightness = [np.mean(ground), np.mean(ink)]
        assert abs(brightness[0] - brightness[1]) > 150
        assert int(np.argmax(brightness)) == lighter


def test_paper_shows_everything_on_white(opened):
    page = opened(color_scheme="dark")
    assert page.locator("#method > details").get_attribute("open") is None
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.evaluate(
        """() => [...document.querySelectorAll('header *, section, section *')].filter(part =>
            !part.closest('.tip, .copy, .screen, defs') && !part.closest('.ring, title')
            && !part.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})
        ).map(part => part.outerHTML.slice(0, 80))"""
    )
    assert hidden == []
    assert page.locator("#method details dd").last.bounding_box()["height"] > 5
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    assert len(page.pdf(format="A4")) > 10_000


def test_the_contents_lead_to_their_sections(opened):
    page = opened()
    for link in page.locator("nav a").all():
        assert page.locator(f"section{link.get_attribute('href')}").count() == 1

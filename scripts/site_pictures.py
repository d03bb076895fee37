"""Pictures of the built site for docs/develop/site: ``python scripts/site_pictures.py``; needs Chromium and playwright.

Build the site first (``make docs``). Pages are opened from files, with the network off. Every page is also checked for
what must not be: a page that scrolls sideways on a phone, a request that leaves the machine, a formula that was not
drawn. ``--check`` does so for all pages of the site and keeps no pictures.
"""

import argparse
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from kernelweave.evaluation.report.pdf import find_chromium

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build" / "html"
FOLDER = ROOT / "docs" / "develop" / "site"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PAGES = {
    "front": "index.html",
    "guide": "guide/kernel_kmeans.html",
    "choosing": "guide/choosing.html",
    "api": "api/kernelweave.KernelKMeans.html",
    "gallery": "gallery/index.html",
    "results": "results.html",
    "scoreboard": "scoreboard.html",
}
#: Pixels of a kept picture: these are small, to be looked at side by side.
WIDTHS = {"desktop": 800, "phone": 300}
QUALITY = 72
#: Formulas without a height: browsers that do not know MathML show none.
FLAT = "[...document.querySelectorAll('math')].filter(m => m.getBoundingClientRect().height < 4).length"
MISSING = "[...document.images].filter(i => i.complete && !i.naturalWidth && i.src).map(i => i.src)"


def faults(page):
    """Return what is wrong with the page that is open."""
    wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    found = [f"is {wide} pixels wide in a window of {window}"] if wide > window else []
    flat = page.evaluate(FLAT)
    found += [f"{flat} formulas are not drawn"] if flat else []
    broken = page.evaluate(MISSING)
    found += [f"picture {source} is missing" for source in broken]
    return found


def keep_picture(screenshot, width, path):
    """Save a screenshot as a small picture."""
    with Image.open(BytesIO(screenshot)) as whole:
        height = round(whole.height * width / whole.width)
        whole.convert("RGB").resize((width, height), Image.Resampling.LANCZOS).save(path, quality=QUALITY, method=6)


def visit(browser, size, scheme, addresses, *, keep):
    """Open pages in one window, keep their pictures, and yield what is wrong."""
    window = DESKTOP if size == "desktop" else PHONE
    context = browser.new_context(offline=True, viewport=window, color_scheme=scheme, reduced_motion="reduce")
    asked = []
    context.on("request", lambda request: asked.append(request.url) if not request.url.startswith("file:") else None)
    view = context.new_page()
    for name, address in addresses.items():
        view.goto((SITE / address).as_uri())
        view.wait_for_timeout(250)
        yield from (f"{address} ({size}, {scheme}) {fault}" for fault in faults(view))
        if keep:
            keep_picture(view.screenshot(), WIDTHS[size], FOLDER / f"{name}-{size}-{scheme}.webp")
    yield from (f"{url} was asked for" for url in asked if not url.startswith("data:"))
    context.close()


def main():
    """Take the pictures and look at every page; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="look at every page of the site and keep no pictures")
    checking = parser.parse_args().check
    every = {path.relative_to(SITE).as_posix(): path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html")}
    FOLDER.mkdir(parents=True, exist_ok=True)
    wrong = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        if checking:
            wrong += visit(browser, "phone", "light", every, keep=False)
        else:
            for size in ("desktop", "phone"):
                for scheme in ("light", "dark"):
                    wrong += visit(browser, size, scheme, PAGES, keep=True)
        browser.close()
    for line in wrong:
        print(line)
    pictures = list(FOLDER.glob("*.webp"))
    print(f"{len(wrong)} faults; {len(pictures)} pictures, {sum(path.stat().st_size for path in pictures):,} bytes")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

"""Pictures of the report for the documentation: ``python scripts/report_pictures.py``; needs Chromium and playwright.

Writes docs/_static/report*.png and notebook.png, each below 150 kB: desktop, phone, dark, 24 clusters, a graph, and
what notebooks show of a model and of a pipeline.
"""

import tempfile
from io import BytesIO
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import GraphCut, GraphFusionClustering, KernelKMeans, MultiViewKernelKMeans
from kernelweave.datasets import load_multiview_digits, make_corrupted_views, standardize
from kernelweave.evaluation.report.pdf import find_chromium
from kernelweave.report import write_report

FOLDER = Path(__file__).parents[1] / "docs" / "_static"
DESKTOP = {"width": 1280, "height": 1040}
PHONE = {"width": 390, "height": 1000}
COLOURS = 192


def digits(path):
    """Write the report on digits of four kinds in three views."""
    data = load_multiview_digits(n_classes=4)
    views = {name: standardize(data.views[name]) for name in ("fourier", "pixels", "profiles")}
    model = MultiViewKernelKMeans(4, kernel_params={"gamma": "median"}, random_state=0).fit(views)
    return write_report(path, model, views, labels_true=data.target, title="Digits 0 to 3")


def many(path):
    """Write a report on 24 clusters."""
    X, _ = make_blobs(1200, 5, centers=24, cluster_std=3.0, center_box=(-18, 18), random_state=3)
    names = ["height", "weight", "length of the wing", "depth of the bill", "temperature"]
    model = GraphFusionClustering(24, random_state=0).fit(X)
    return write_report(path, model, X, feature_names=names)


def graph(path):
    """Write a report on a graph of four communities."""
    rng = np.random.default_rng(0)
    community = np.repeat(np.arange(4), [60, 90, 50, 40])
    chance = np.where(community[:, None] == community, 0.16, 0.008)
    upper = np.triu(rng.random(chance.shape) < chance, 1)
    A = sp.csr_array((upper | upper.T).astype(float))
    return write_report(path, GraphCut(4, random_state=0).fit(A), A, ids=[f"node {i}" for i in range(240)])


def notebook(path):
    """Write what a notebook shows of a model with views, and of a pipeline."""
    data = make_corrupted_views(3, 1, n_samples=240, random_state=0)
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(data.views)
    pipe = make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)).fit(data.views["noisy_0"])
    path.write_text(f"<body>{model._repr_html_()}<br><br>{pipe._repr_html_()}</body>", encoding="utf-8")
    return path


def fewer_colours(whole):
    """Return a picture in its most frequent colours, so that grounds and marks keep theirs.

    The ways of Pillow give the colours of small marks to the ground, or tint the ground.
    """
    counted = sorted(whole.getcolors(whole.width * whole.height), reverse=True)[:COLOURS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for _, colour in counted for value in colour])
    return whole.quantize(palette=palette, dither=Image.Dither.NONE)


def main():
    """Draw them all."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        pages = {name: make(Path(folder, f"{name}.html")) for name, make in PAGES.items()}
        browser = driver.chromium.launch(executable_path=find_chromium())
        for file, (page, options) in PICTURES.items():
            context = browser.new_context(offline=True, **options)
            view = context.new_page()
            view.goto(pages[page].as_uri())
            whole = Image.open(BytesIO(view.screenshot())).convert("RGB")
            fewer_colours(whole).save(FOLDER / file, optimize=True)
            print(file, (FOLDER / file).stat().st_size)
            context.close()
        browser.close()


PAGES = {"digits": digits, "many": many, "graph": graph, "notebook": notebook}
PICTURES = {
    "report.png": ("digits", {"viewport": DESKTOP}),
    "report_phone.png": ("digits", {"viewport": PHONE, "is_mobile": True}),
    "report_dark.png": ("digits", {"viewport": DESKTOP, "color_scheme": "dark"}),
    "report_many.png": ("many", {"viewport": {"width": 1280, "height": 1000}}),
    "report_graph.png": ("graph", {"viewport": {"width": 1280, "height": 1240}}),
    "notebook.png": ("notebook", {"viewport": {"width": 760, "height": 460}}),
}

if __name__ == "__main__":
    main()

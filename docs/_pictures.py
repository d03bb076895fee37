"""Pictures of the documentation: one of every Display, those that examples draw, and the thumbnails of the gallery.

``python docs/_pictures.py`` draws the Displays of ``guide/pictures.md`` anew, into ``_static``; names given to it draw
these alone, such as ``display_embedding.png``, or ``two_rings.png``, which an example draws.
"""

import runpy
import sys
from io import BytesIO
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
#: Where pictures are kept.
STATIC = HERE / "_static"
#: Pictures of the guide that examples draw.
EXAMPLES = {
    "convex_mixture.png": "plot_convex_mixture.py",
    "graph_fusion.png": "plot_graph_fusion.py",
    "incomplete.png": "plot_incomplete_omics.py",
    "kernel_spectral.png": "plot_kernel_spectral.py",
    "minmax_start.png": "plot_minmax_start.py",
    "multi_view_digits.png": "plot_multi_view_digits.py",
    "ratio_kernels.png": "plot_ratio_kernels.py",
    "ten_rings.png": "plot_ten_rings.py",
    "two_rings.png": "plot_two_rings.py",
}
#: The part of a picture that its thumbnail shows, as shares of width and height: left, top, right, bottom. A picture of
#: several panels cannot be read at the size of a thumbnail; one of its panels can.
PANELS = {
    "plot_convex_mixture": (0.0, 0.0, 0.45, 1.0),
    "plot_graph_fusion": (0.365, 0.0, 0.665, 1.0),
    "plot_how_many": (0.67, 0.0, 1.0, 1.0),
    "plot_incomplete_omics": (0.487, 0.0, 1.0, 1.0),
    "plot_kernel_spectral": (0.0, 0.5, 0.232, 1.0),
    "plot_minmax_start": (0.667, 0.0, 1.0, 1.0),
    "plot_multi_view_digits": (0.52, 0.44, 1.0, 1.0),
    "plot_photo_segments": (0.0, 0.5, 1.0, 1.0),
    "plot_ratio_kernels": (0.45, 0.33, 1.0, 0.67),
    "plot_string_kernel": (0.0, 0.0, 1.0, 0.55),
    "plot_ten_rings": (0.665, 0.0, 1.0, 1.0),
    "plot_tissue_image": (0.5, 0.0, 1.0, 1.0),
    "plot_two_rings": (0.5, 0.0, 1.0, 1.0),
}
#: The examples in the order of the gallery.
ORDER = (
    "plot_graph_fusion",
    "plot_incomplete_omics",
    "plot_text_and_links",
    "plot_photo_segments",
    "plot_mesh_partition",
    "plot_string_kernel",
    "plot_time_series",
    "plot_mixed_table",
    "plot_how_many",
    "plot_explain_wines",
    "plot_report",
    "plot_saved_model",
    "plot_larger_than_memory",
    "plot_two_rings",
    "plot_ten_rings",
    "plot_minmax_start",
    "plot_convex_mixture",
    "plot_multi_view_digits",
    "plot_kernel_spectral",
    "plot_ratio_kernels",
    "plot_tissue_image",
)
#: Width and height of a thumbnail, twice those on the page, for sharp screens.
THUMBNAIL = (480, 330)


class GalleryOrder:
    """The key by which the gallery is sorted."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, file):
        return ORDER.index(Path(file).stem)


def write_thumbnails(app):
    """Write the thumbnails of the gallery again: the chosen panel, as large as it fits, on white."""
    from PIL import Image, ImageOps

    folder = Path(app.srcdir, "gallery", "images")
    for name in ORDER:
        left, top, right, bottom = PANELS.get(name, (0.0, 0.0, 1.0, 1.0))
        with Image.open(folder / f"sphx_glr_{name}_001.png") as picture:
            width, height = picture.size
            panel = picture.convert("RGB").crop((left * width, top * height, right * width, bottom * height))
        # White margins around the panel would make it smaller.
        content = ImageOps.invert(panel).getbbox() or (0, 0, *panel.size)
        card = ImageOps.pad(ImageOps.expand(panel.crop(content), 6, "white"), THUMBNAIL, color="white")
        card.save(folder / "thumb" / f"sphx_glr_{name}_thumb.png", optimize=True)


def setup(app):
    """Write thumbnails after the gallery was built, which happens at the default priority of 500."""
    app.connect("builder-inited", write_thumbnails, priority=900)
    return {"parallel_read_safe": True}


def groups(k, n, spread=0.6, seed=0):
    """Return round groups on a shaken grid, and their numbers."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(np.sqrt(k)))
    centres = 4.0 * np.column_stack([np.arange(k) % side, np.arange(k) // side]) + rng.uniform(-0.9, 0.9, (k, 2))
    y = np.arange(n) % k
    return centres[y] + spread * rng.normal(size=(n, 2)), y


def clustered_digits():
    """Return scikit-learn's digits, their classes, and ten clusters of them."""
    from sklearn.datasets import load_digits

    from kernelweave import KernelKMeans

    X, y = load_digits(return_X_y=True)
    return X, y, KernelKMeans(10, kernel="linear", n_init=5, random_state=0).fit(X)


def two_of_three_views():
    """Return views of which the third is noise."""
    from kernelweave.datasets import make_corrupted_views

    return make_corrupted_views(2, 1, n_samples=600, n_corrupted=60, random_state=0)


def embedding(plots):
    X, _, model = clustered_digits()
    return plots.EmbeddingDisplay.from_estimator(model, X)


def many_clusters(plots):
    from kernelweave import KernelKMeans

    X, y = groups(24, 1200)
    model = KernelKMeans(24, kernel="linear", init=y).fit(X)
    return plots.EmbeddingDisplay.from_estimator(model, X)


def silhouette(plots):
    X, _, model = clustered_digits()
    return plots.SilhouetteDisplay.from_estimator(model, X)


def cluster_heatmap(plots):
    from sklearn.datasets import load_wine
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from kernelweave import KernelKMeans

    wine = load_wine(as_frame=True).data
    model = make_pipeline(StandardScaler(), KernelKMeans(3, kernel="linear", random_state=0)).fit(wine)
    return plots.ClusterHeatmapDisplay.from_estimator(model, wine)


def confusion(plots):
    _, y, model = clustered_digits()
    return plots.ConfusionDisplay.from_estimator(model, y)


def kernel_matrix(plots):
    from sklearn.datasets import load_digits

    from kernelweave import MultiViewSpectralClustering

    X, _ = load_digits(return_X_y=True)
    halves = {"upper half": X[:, :32], "lower half": X[:, 32:]}
    graphs = {"kernel": "nearest_neighbors", "kernel_params": {"n_neighbors": 10}, "normalize": "degrees"}
    model = MultiViewSpectralClustering(10, view_weights="uniform", random_state=0, **graphs).fit(halves)
    return plots.KernelMatrixDisplay.from_estimator(model, halves)


def view_weights(plots):
    from kernelweave import MultiViewKernelKMeans

    return plots.ViewWeightsDisplay.from_estimator(
        MultiViewKernelKMeans(3, random_state=0).fit(two_of_three_views().views)
    )


def objective_path(plots):
    from kernelweave import MultiViewKernelKMeans

    model = MultiViewKernelKMeans(7, random_state=1).fit(two_of_three_views().views)
    return plots.ObjectivePathDisplay.from_estimator(model)


def exponent(plots):
    from kernelweave import MultiViewKernelKMeans

    data = two_of_three_views()
    model = MultiViewKernelKMeans(3, random_state=0)
    return plots.ExponentDisplay.from_estimator(model, data.views, y=data.target)


def exemplar(plots):
    from kernelweave import ConvexMixture

    X, _ = groups(4, 300, spread=0.9)
    return plots.ExemplarDisplay.from_estimator(ConvexMixture(4, beta_scale=3.0).fit(X), X)


def boundary(plots):
    from kernelweave import KernelSpectralClustering
    from kernelweave.datasets import make_two_rings

    X, _ = make_two_rings(random_state=0)
    return plots.BoundaryDisplay.from_estimator(KernelSpectralClustering(2, kernel_params={"sigma": 0.3}).fit(X), X)


def score(plots):
    from kernelweave import KernelSpectralClustering

    X, _ = groups(4, 300, spread=0.9)
    return plots.ScoreDisplay.from_estimator(KernelSpectralClustering(4, kernel_params={"sigma": 1.5}).fit(X))


def decision(plots):
    from kernelweave import RatioMultipleKernelClustering

    X, _ = groups(2, 500, spread=1.0)
    return plots.DecisionDisplay.from_estimator(RatioMultipleKernelClustering(random_state=0).fit(X), X)


def inertia_path(plots):
    from kernelweave import GlobalKernelKMeans

    X, _ = groups(6, 400)
    return plots.InertiaPathDisplay.from_estimator(GlobalKernelKMeans(12, kernel="linear").fit(100.0 * X))


def cluster_count(plots):
    from kernelweave import KernelKMeans

    X, _ = groups(6, 400)
    return plots.ClusterCountDisplay.from_estimator(KernelKMeans(n_init=5, random_state=0), X, range(2, 13))


def search_trace(plots):
    from scipy.stats import loguniform

    from kernelweave import KernelSpectralClustering
    from kernelweave.datasets import make_two_rings
    from kernelweave.model_selection import AnnealingSearch

    X, _ = make_two_rings(random_state=0)
    space = {"kernel_params": {"sigma": loguniform(0.02, 5.0)}}
    search = AnnealingSearch(KernelSpectralClustering(2), space, criterion="blf", n_iter=60, random_state=0).fit(X)
    return plots.SearchTraceDisplay.from_estimator(search, param="kernel_params.sigma")


def start_comparison(plots):
    X, _ = groups(5, 400, spread=0.8)
    bad = [[-0.5, 0.0], [0.5, 0.0], [4.0, 0.0], [8.0, 0.0], [2.0, 4.0]]
    return plots.StartComparisonDisplay.from_start(X, bad)


#: Functions that draw the pictures, by the name of the file.
DISPLAYS = {
    f"display_{draw.__name__}.png": draw
    for draw in (
        embedding,
        many_clusters,
        silhouette,
        cluster_heatmap,
        confusion,
        kernel_matrix,
        view_weights,
        objective_path,
        exponent,
        exemplar,
        boundary,
        score,
        decision,
        inertia_path,
        cluster_count,
        search_trace,
        start_comparison,
    )
}


def draw_again(names):
    """Draw pictures and save them as small files: 128 colours are enough for what they hold."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from PIL import Image

    from kernelweave import plots

    for name in names:
        if name in EXAMPLES:
            figure = runpy.run_path(str(HERE.parent / "examples" / EXAMPLES[name]))["draw"]()
            room = {"bbox_inches": "tight", "pad_inches": 0.08}
        else:
            figure = DISPLAYS[name](plots).figure_
            room = {}
        saved = BytesIO()
        figure.savefig(saved, dpi=110, **room)
        pyplot.close("all")
        with Image.open(saved) as picture:
            picture.convert("RGB").quantize(128).save(STATIC / name, optimize=True)


if __name__ == "__main__":
    draw_again(sys.argv[1:] or DISPLAYS)

"""What older files hold, turned into what today's classes hold.

A file carries the version of its format. Objects of an older version pass through the upgrades of every version since,
each of which gets the fields of one object, as values, and returns those of the next version. Then the object is made
and checked like any other. What an object holds is made before it, so an upgrade sees arrays and finished objects.

To add one
----------
You have changed the fields of a class in ``names.CLASSES``: a parameter has another name, a fitted attribute went into
a composed object. Files of the older version must keep loading, so write a function of the fields, of steps that are in
``steps``, and register it in ``UPGRADES`` under the version the files were written in and the name of the class::

    def _some_kernel_clustering(fields: Fields) -> Fields:
        fields = renamed(fields, weights="view_weights", view_weights="init_view_weights", ridge="regularization")
        fields.setdefault("random_state", None)  # new, and without effect on what was fitted
        sources = {"kernel": "_kernel", "weights": "_weights", "totals": "_totals", "norms": "_norms"}
        return composed(fields, "_model", "model/KernelMeans", **sources)

    UPGRADES = {1: {"estimator/SomeKernelClustering": _some_kernel_clustering, ...}}

``model/KernelMeans`` is a frozen dataclass (without slots) with the fields kernel, weights, totals and norms; what else
it may cache does not go into a file. It needs

- a line in ``names.CLASSES``, and in ``names.MODELS`` where an estimator keeps it in ``_model``;
- type hints, which are checked: a field of another type is refused;
- a line in ``sizes.SIZES``, ``"model/KernelMeans": {"weights": "n", "totals": "k", "norms": "k"}``;
- a line in ``sizes.SUMMED_KERNELS``, ``"model/KernelMeans": "kernel"``, where sums over clusters are taken of it, and
  one in ``sizes.LABELS`` where it has labels.

Then run ``pytest tests/persistence``: files of all versions are kept in ``tests/fixtures/models``, must load and must
give the results they gave. They are never saved again.

What to write, and what not:

- An upgrade tells what the file meant. Where a version had no such field, put in the value under which today's code
  does what that version did, and say so; where nobody can know it, leave it out.
- An older file may lack what was added within a version: ask ``if "_x" in fields``. Where one value says what such a
  file meant, put it into ``ADDED``.
- The fields come from a file, and are checked only after the upgrade: use NumPy and plain Python on them, never
  compiled loops, ``predict`` or a constructor. :func:`composed` makes objects without one and checks them.
- While no release has written the present version, change its upgrades freely. After that, raise ``names.VERSION``,
  add a table for the version before, and leave the older ones as they are. What an upgrade looks into and what it makes
  are objects of today's classes, so where such a class changes, the older upgrades that make it change with it.
"""

from kernelweave.persistence.names import VERSION, names_since
from kernelweave.persistence.steps import Fields, Upgrade
from kernelweave.persistence.upgrades_comparators import COMPARATORS
from kernelweave.persistence.upgrades_kmeans import KMEANS
from kernelweave.persistence.upgrades_margin import MARGIN
from kernelweave.persistence.upgrades_mixtures import MIXTURES
from kernelweave.persistence.upgrades_spectral import SPECTRAL

#: By version and name, what turns the fields of an object of that version into those of the next.
UPGRADES: dict[int, dict[str, Upgrade]] = {1: COMPARATORS | KMEANS | MARGIN | MIXTURES | SPECTRAL}

#: By name, what was added without a new version, with the value under which today's code does what it did before.
ADDED: dict[str, Fields] = {
    "estimator/AffinityPropagation": {"checkpoint": None},
    "estimator/CoRegularizedSpectralClustering": {"checkpoint": None, "missing": "error"},
    "estimator/CoTrainedSpectralClustering": {"checkpoint": None},
    "estimator/ConvexMixture": {"checkpoint": None},
    "estimator/CorrelationalSpectralClustering": {"checkpoint": None},
    "estimator/GlobalKernelKMeans": {"checkpoint": None},
    "estimator/GraphCut": {"checkpoint": None},
    "estimator/GraphFusionClustering": {
        "checkpoint": None,
        "missing": "error",
        "neighbor_search": "auto",
        "memory_limit": None,
    },
    "estimator/IterativeSVR": {"checkpoint": None},
    "estimator/KMedoids": {"checkpoint": None},
    "estimator/KernelKMeans": {"checkpoint": None},
    "estimator/MinMaxKMeans": {"checkpoint": None},
    "estimator/MinMaxKernelKMeans": {"checkpoint": None},
    "estimator/MultiViewConvexMixture": {"checkpoint": None, "missing": "error"},
    "estimator/MultiViewEM": {"checkpoint": None, "missing": "error"},
    "estimator/MultiViewKMeans": {"checkpoint": None, "missing": "error"},
    "estimator/MultiViewKernelKMeans": {"checkpoint": None, "missing": "error"},
    "estimator/MultiViewNMF": {"checkpoint": None, "missing": "error"},
    "estimator/MultiViewSpectralClustering": {"checkpoint": None, "missing": "error"},
    "estimator/NEMO": {"checkpoint": None},
    "estimator/NgSpectralClustering": {"checkpoint": None},
    "estimator/OptimizedKernelKMeans": {"checkpoint": None},
    "estimator/PifsKMeans": {"checkpoint": None},
    "estimator/RatioMultipleKernelClustering": {"checkpoint": None},
    "estimator/SimilarityNetworkFusion": {"checkpoint": None},
    "extension/FusedGraph": {"observed": None, "level": 0.0},
    "formula/SelfTuning": {"memory_limit": 2048.0},
    "kernel/NeighborGraph": {"recall": 1.0, "memory_limit": 2048.0},
    "kernel/ViewKernel": {"columns": None},
    "model/Centers": {"view_norms": None},
    "view/Kernel": {"samples": None},
    "view/Linked": {"samples": None},
    "view/Network": {"unit": False},
}


def upgraded(written: str, fields: Fields, version: int) -> Fields:
    """Return the fields of an object in a file of some version as the class that it is today has them."""
    names = names_since(written, version)
    for step, name in zip(range(version, VERSION), names, strict=False):
        if name in UPGRADES[step]:
            fields = UPGRADES[step][name](fields)
    return ADDED.get(names[-1], {}) | fields

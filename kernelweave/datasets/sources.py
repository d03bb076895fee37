"""The benchmark sets that can be downloaded: where their originals are, how to read them, and what must come out.

``contents.json`` holds the digests of the arrays of every set, and small facts such as names of views and classes;
``scripts/data_contents.py`` makes it from a folder of benchmark files. An original that becomes anything else is not
the set, wherever it comes from; so several addresses can be named for one set, and a copy is as good as the original.
"""

import json
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave.datasets.conversion import (
    Arrays,
    Target,
    Wanted,
    labels_in_order,
    read_matlab,
    read_metis,
    read_table,
    read_triplets,
    read_view_tables,
    table_of,
)
from kernelweave.datasets.download import File

Reader = Callable[[Sequence[bytes], Target], Arrays]
#: Gets a set by a fetcher of scikit-learn, which has a folder of its own to work in and a number of attempts.
Fetcher = Callable[[Path, int], Arrays]


@dataclass(frozen=True)
class Source:
    """Where a set comes from: files and how to read them, or a fetcher of scikit-learn."""

    about: str
    files: tuple[File, ...] = ()
    read: Reader | None = None
    fetcher: Fetcher | None = None


@dataclass(frozen=True)
class DataSet:
    """A benchmark set: its file, what it is, and its sources, the best one first; none if it is not public."""

    name: str
    path: str  # of the file below the data folder, without the suffix
    about: str
    sources: tuple[Source, ...]
    target: Target

    @property
    def origin(self) -> str:
        """Where the set comes from, in words."""
        return self.sources[0].about if self.sources else "not known to be public"


@cache
def catalogue() -> dict[str, DataSet]:
    """Return all sets by name."""
    text = resources.files(__package__).joinpath("contents.json").read_text(encoding="utf-8")
    contents = json.loads(text)
    return {name: _data_set(name, *entry, contents[name]) for name, entry in sorted(ENTRIES.items())}


def _data_set(name: str, path: str, about: str, sources: tuple[Source, ...], content: Mapping[str, Any]) -> DataSet:
    arrays = {key: Wanted(tuple(each["shape"]), each["sha256"]) for key, each in content["arrays"].items()}
    return DataSet(name, path, about, sources, Target(content["facts"], arrays, content["sha256"]))


# --- kinds of sources -------------------------------------------------------------------------------------------------


def _uci(number: int, title: str, members: Sequence[str], read: Reader) -> Source:
    address = f"https://archive.ics.uci.edu/static/public/{number}/{title}.zip"
    return Source(f"UCI repository, set {number}", tuple(File(address, member) for member in members), read)


def _github(repository: str, commit: str, paths: str | Sequence[str], read: Reader = read_matlab) -> Source:
    listed = (paths,) if isinstance(paths, str) else paths
    base = f"https://raw.githubusercontent.com/{repository}/{commit}/"
    files = tuple(File(base + urllib.parse.quote(path)) for path in listed)
    return Source(f"GitHub {repository}", files, read)


def _openml(number: int, labels: Sequence[str], n_train: int | None = None) -> Source:
    return Source(f"OpenML {number}", fetcher=partial(_openml_table, number=number, labels=labels, n_train=n_train))


def _openml_table(folder: Path, attempts: int, *, number: int, labels: Sequence[str], n_train: int | None) -> Arrays:
    X, y = _openml_arrays(folder, attempts, number)
    return table_of(X, y, labels, n_train)


def _openml_views(folder: Path, attempts: int, *, numbers: Sequence[int], sizes: Sequence[int]) -> Arrays:
    views = {f"view_{i}": _openml_arrays(folder, attempts, number)[0] for i, number in enumerate(numbers)}
    return {**views, "y": labels_in_order(sizes)}


def _openml_arrays(folder: Path, attempts: int, number: int) -> tuple[Any, Any]:
    from sklearn.datasets import fetch_openml

    options = {"as_frame": False, "parser": "liac-arff", "data_home": str(folder), "n_retries": attempts - 1}
    bunch = fetch_openml(data_id=number, **options)
    return bunch.data, bunch.target


def _olivetti(folder: Path, attempts: int) -> Arrays:
    """Return the faces as grey levels; scikit-learn divides them by the brightest."""
    from sklearn.datasets import fetch_olivetti_faces

    faces = fetch_olivetti_faces(data_home=str(folder), n_retries=attempts - 1)
    return {"X": np.rint(faces.data.astype(np.float64) * _BRIGHTEST), "y": faces.target}


# --- the sets ---------------------------------------------------------------------------------------------------------

_BRIGHTEST = 242.0
_DIGITS = tuple("0123456789")
_LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ECOLI = ("cp", "im", "pp", "imU", "om", "omL", "imL", "imS")
_SATIMAGE = ("1", "2", "3", "4", "5", "7")
_DERMATOLOGY = ("1", "2", "3", "4", "5", "6")
_TWO_HUNDRED = (200,) * 10
_VIEWS_OF_MFEAT = ("fou", "fac", "kar", "pix", "zer", "mor")
_MFEAT = partial(read_view_tables, sizes=_TWO_HUNDRED)
_GRAPHS = (
    *("3elt", "add20", "add32", "bcsstk29", "bcsstk33", "cs4", "data", "fe_4elt2", "fe_body", "fe_pwt", "finan512"),
    *("memplus", "t60k", "uk", "vibrobox", "wing", "wing_nodal"),
)

# Repositories with many sets, at the commit that holds them; HEAD where the commit of a file is not known.
_zhang = partial(_github, "ChuanbinZhang/Multi-view-datasets", "03ead31e6538322e4e0701c3c28a01595c1a015d")
_yilin = partial(_github, "YilinZhang107/Multi-view-Datasets", "2475fef9430ac1cacc7bf4f8d284d4fd14919ca5")
_rmkkm = partial(_github, "csliangdu/RMKKM", "d580ac64363b391bf7751f216c52319e629a9dfc")
_code706 = partial(_github, "Code706/DATASETS-Multi-view")
_zhou = partial(_github, "zhou572/Multi-view-Datasets")
_vardakas = partial(_github, "gvardakas/global-kernel-k-means-pp", "HEAD")
_skantz = partial(_github, "Skantz/expander-decomposition", "e6dfa6d9ca49566435dea21867b6d2df569ae3c2")
_pmvc = partial(_github, "chaytonmin/Partial-Multi-View-Clustering", "21ec4f1720694b7de30b8d847b9bd9692631dd56")

Entry = tuple[str, str, tuple[Source, ...]]

_TABLES: dict[str, Entry] = {
    "australian": (
        "australian/australian",
        "Credit applications in Australia",
        (
            _uci(143, "statlog+australian+credit+approval", ["australian.dat"], read_table),
            _vardakas("Datasets/australian/australian.dat", read_table),
        ),
    ),
    "dermatology": (
        "dermatology/dermatology",
        "Skin diseases",
        (
            _uci(33, "dermatology", ["dermatology.data"], partial(read_table, labels=_DERMATOLOGY)),
            _vardakas("Datasets/dermatology/dermatology.data", partial(read_table, labels=_DERMATOLOGY)),
            _openml(35, _DERMATOLOGY),
        ),
    ),
    "ecoli": (
        "ecoli/ecoli",
        "Sites of proteins in a cell",
        (
            _uci(39, "ecoli", ["ecoli.data"], partial(read_table, drop=[0])),
            _vardakas("Datasets/ecoli/ecoli.data", partial(read_table, drop=[0])),
            _openml(39, _ECOLI),
        ),
    ),
    "ionosphere": (
        "ionosphere/ionosphere",
        "Radar returns from the ionosphere",
        (
            _uci(52, "ionosphere", ["ionosphere.data"], partial(read_table, labels=("b", "g"))),
            _openml(59, ("b", "g")),
        ),
    ),
    "letter": (
        "letter/letter",
        "Printed capital letters",
        (
            _uci(59, "letter+recognition", ["letter-recognition.data"], partial(read_table, label=0)),
            _openml(6, _LETTERS),
        ),
    ),
    "optdigits": (
        "optdigits/optdigits",
        "Scanned handwritten digits",
        (
            _uci(
                80,
                "optical+recognition+of+handwritten+digits",
                ["optdigits.tra", "optdigits.tes"],
                read_table,
            ),
            _github(
                "logicalapple/cs7641-Supervised-Learning",
                "62f33c6bdb37797a70e2e9180a4c4bd65c11c67a",
                ["optdigits.tra", "optdigits.tes"],
                read_table,
            ),
            _openml(28, _DIGITS, n_train=3823),
        ),
    ),
    "pendigits": (
        "pendigits/pendigits",
        "Digits written with a pen",
        (
            _uci(81, "pen+based+recognition+of+handwritten+digits", ["pendigits.tra", "pendigits.tes"], read_table),
            _vardakas(["Datasets/pendigits/pendigits.tra", "Datasets/pendigits/pendigits.tes"], read_table),
            _openml(32, _DIGITS, n_train=7494),
        ),
    ),
    "r15": ("r15/r15", "15 groups in the plane", (_vardakas("Datasets/r15/R15.arff", read_table),)),
    "satimage": (
        "satimage/satimage",
        "Soil in satellite images",
        (
            _uci(146, "statlog+landsat+satellite", ["sat.trn", "sat.tst"], partial(read_table, labels=_SATIMAGE)),
            _github(
                "YannisSch/Statlog_Landstat_Satellite_Project",
                "6f31538326e860b63b09efdb43a0f76f3973ce29",
                ["data/sat.trn", "data/sat.tst"],
                partial(read_table, labels=_SATIMAGE),
            ),
        ),
    ),
    "wine": (
        "wine/wine",
        "Wines of three growers",
        (
            _uci(109, "wine", ["wine.data"], partial(read_table, label=0)),
            _vardakas("Datasets/wine/wine.data", partial(read_table, label=0)),
        ),
    ),
}

_IMAGES: dict[str, Entry] = {
    "ar": ("ar/ar", "AR faces", (_rmkkm("data/AR_840n_768d_120c.mat"),)),
    "binaryalphadigs": (
        "binaryalphadigs/binaryalphadigs",
        "Binary digits and letters",
        (
            _github(
                "csliangdu/RMKKM",
                "168c5180a4346e32ea6363d3679b06fe68a785cc",
                "data/binaryalphadigs_1404n_320d_36c.mat",
            ),
        ),
    ),
    "coil20": ("coil20/coil20", "COIL-20 objects", (_rmkkm("data/COIL20_1440n_1024d_20c.mat"),)),
    "jaffe": ("jaffe/jaffe", "JAFFE faces", (_rmkkm("data/jaffe_213n_676d_10c.mat"),)),
    "olivetti": (
        "olivetti/olivetti",
        "Olivetti faces",
        (
            Source("scikit-learn, fetch_olivetti_faces", fetcher=_olivetti),
            _github(
                "sjgershm/DBM",
                "f2c3daacb880342847ed24283fb5a753c006b5d6",
                "olivettifaces.mat",
                partial(read_matlab, sizes=(10,) * 40, turned=True),
            ),
        ),
    ),
    "orl": ("orl/orl", "ORL faces", (_rmkkm("data/ORL_400n_1024d_40c.mat"),)),
    "yale": ("yale/yale", "Yale faces", (_rmkkm("data/YALE_165n_1024d_15c.mat"),)),
}

_TEXTS: dict[str, Entry] = {
    "tr11": ("tr11/tr11", "TREC texts, tr11", (_rmkkm("data/tr11_414n_6429d_9c_tfidf_uni.mat"),)),
    "tr41": ("tr41/tr41", "TREC texts, tr41", (_rmkkm("data/tr41_878n_7454d_10c_tfidf_uni.mat"),)),
    "tr45": ("tr45/tr45", "TREC texts, tr45", (_rmkkm("data/tr45_690n_8261d_10c_tfidf_uni.mat"),)),
}

_VIEWS: dict[str, Entry] = {
    "3sources": (
        "3sources/3sources",
        "News of three agencies, 3 views",
        (_yilin("3sources.mat"), _zhang("3Sources.mat")),
    ),
    "bbc4view": (
        "bbc4view/bbc4view",
        "BBC news, 4 views",
        (_code706("a282686e20be58c15b8bb2571232a76f605b3fcb", "BBC.mat"), _zhang("BBC4view.mat")),
    ),
    "bdgp": (
        "bdgp/bdgp",
        "Drosophila images, 2 views",
        (
            _github("xiyu1007/Multi-view-datasets", "HEAD", "Datasets/BDGP/BDGP.mat"),
            _github(
                "xiyu1007/Multi-view-datasets",
                "b293bc91835c00ba8b5ad47356f43099772e0be8",
                "Full_code/Datasets/BDGP/BDGP.mat",
            ),
        ),
    ),
    "citeseer": ("citeseer/citeseer", "CiteSeer papers, 2 views", (_zhang("CiteSeer.mat"), _yilin("CiteSeer.mat"))),
    "coil20_3view": (
        "coil20/coil20_3view",
        "COIL-20 objects, 3 views",
        (
            _code706("6eff822b87f34aa18f1e51e294f07b4ff121aab2", "COIL20.mat"),
            _zhou("a891eab5790dec390fd8493f33bf049b75d590cd", "COIL20_30_19_30.mat"),
        ),
    ),
    "cora": ("cora/cora", "Cora papers, 4 views", (_zhang("Cora.mat"),)),
    "hw2sources": (
        "hw2sources/hw2sources",
        "MNIST and USPS digits, 2 views",
        (_zhou("8a1ccffaf62b471bbea6f60cb3053a8d4bb531d1", "HW2sources.mat"),),
    ),
    "kernels_yale5": (
        "kernels/kernels_yale5",
        "Yale faces, 5 kernels",
        (_github("liliangnudt/LSWMKC", "61d55d33c90cb8184ecd3e5de22e68f0aa4f7e58", "datasets/YALE_Kmatrix.mat"),),
    ),
    "landuse21": ("landuse21/landuse21", "Land in aerial images, 3 views", (_code706("HEAD", "LandUse-21.mat"),)),
    "mfeat": (
        "mfeat/mfeat",
        "Multiple features of digits, 6 views",
        (
            _uci(72, "multiple+features", [f"mfeat-{view}" for view in _VIEWS_OF_MFEAT], _MFEAT),
            _github(
                "software-shao/online-multiview-clustering-with-incomplete-view",
                "HEAD",
                [f"digit/mfeat/mfeat-{view}" for view in _VIEWS_OF_MFEAT],
                _MFEAT,
            ),
            _yilin("Handwritten.mat", partial(read_matlab, sizes=_TWO_HUNDRED)),
            Source(
                "OpenML 14, 12, 16, 20, 22, 18",
                fetcher=partial(_openml_views, numbers=(14, 12, 16, 20, 22, 18), sizes=_TWO_HUNDRED),
            ),
        ),
    ),
    "mnist4": ("mnist4/mnist4", "MNIST digits 0 to 3, 3 views", (_zhang("MNIST-4.mat"),)),
    "movies617": ("movies617/movies617", "Films, 2 views", (_zhang("Movies.mat"),)),
    "mvkkm_synthetic": (
        "mvkkm_synthetic/mvkkm_synthetic",
        "The toy set of the thesis, 2 views",
        (
            _github(
                "alanhaq/Kernel-Based-Weighted-Multi-view-Clustering",
                "1d6dced943f53649a70da1fe68a1bbc0c11617c1",
                "Matlab Code/synthetic_data.mat",
                partial(read_matlab, sizes=(300, 200, 200)),
            ),
        ),
    ),
    "pie10": (
        "pie10/pie10",
        "PIE faces, 3 views",
        (_yilin("PIE.mat"), _zhou("c7b4e8ae8fdc9b2df15c0b2e8c0f1c8a7d5ab874", "PIE_face_10.mat")),
    ),
    "proteinfold": ("proteinfold/proteinfold", "Protein folds, 12 views", (_zhang("ProteinFold.mat"),)),
    "reuters1200": ("reuters1200/reuters1200", "Reuters news, 5 languages", (_zhang("Reuters-1200.mat"),)),
    "reuters600": (
        "reuters600/reuters600",
        "Reuters news, 5 languages",
        (
            _github(
                "zskong/Multi-view-data",
                "66304aab45a55a7aa6d1d36cba492785fb1d2fbf",
                "data/reuters.mat",
                read_triplets,
            ),
        ),
    ),
    "webkb_203": ("webkb/webkb_203", "University pages, 3 views", (_yilin("webkb.mat"),)),
    "webkb_cornell_195": (
        "webkb/webkb_cornell_195",
        "Pages of Cornell, 2 views",
        (_pmvc("PVC/example/data/cornellRnSp.mat"),),
    ),
    "webkb_course_binary": (
        "webkb/webkb_course_binary",
        "Course pages, 2 views",
        (_github("UeharaSetsuYu/Multi-view-Datasets", "02889a15139f5516fc54aa1e52ded865e70b124f", "WebKB.mat"),),
    ),
    "webkb_course_tfidf": ("webkb/webkb_course_tfidf", "Course pages, weighted words, 2 views", (_zhang("WebKB.mat"),)),
    "wikipedia": ("wikipedia/wikipedia", "Wikipedia images and texts, 2 views", (_zhang("Wikipedia.mat"),)),
    "wikipedia_test693": (
        "wikipedia/wikipedia_test693",
        "Wikipedia, the test part, 2 views",
        (_zhang("Wikipedia-test.mat"),),
    ),
}

#: Path of the file, what it is, and sources, by name.
ENTRIES: dict[str, Entry] = {
    **_TABLES,
    **_IMAGES,
    **_TEXTS,
    **_VIEWS,
    **{
        name: (f"walshaw/{name}", "Graph of Walshaw's archive", (_skantz(f"graphs/{name}.graph", read_metis),))
        for name in _GRAPHS
    },
}

"""One page for every class and function that ``api.md`` and ``api_parts.md`` list, written when the site is built.

The pages go to ``docs/api``, which git ignores. Each has the signature and the docstring, the methods, links to the
pages of the guide that speak of the name, and the examples of the gallery that use it.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
INDEXES = ("api.md", "api_parts.md")
FOLDER = "api"
#: Methods that estimators inherit from scikit-learn and that users call.
INHERITED = ("fit_predict", "fit_transform")
#: Methods in the order in which users need them; others follow by name.
FIRST = ("fit", "fit_predict", "fit_transform", "predict", "predict_proba", "decision_function", "transform", "score")
#: Pages of the guide that a page names at most.
MOST_LINKS = 3

_MODULE = re.compile(r"^\.\. currentmodule:: (\S+)$")
_ENTRY = re.compile(r"^   (\w+)$")


def listed(text: str) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of everything in the tables of an index."""
    module = ""
    inside = False
    for line in text.splitlines():
        if found := _MODULE.match(line):
            module = found[1]
        if line.startswith(".. autosummary::"):
            inside = True
        elif line and not line.startswith(" "):
            inside = False
        elif inside and (found := _ENTRY.match(line)):
            yield module, found[1]


def own_members(cls: type, described: frozenset[type] = frozenset()) -> tuple[list[str], list[str]]:
    """Return the names of the public methods and of the public properties that this project gives a class.

    What a class takes unchanged from one that is ``described`` on a page of its own is left to that page. Estimators
    keep theirs: a user calls ``fit`` of the class at hand.
    """
    methods = []
    properties = []
    for name in dir(cls):
        owner = next(base for base in cls.__mro__ if name in vars(base) or base is object)
        elsewhere = owner is not cls and owner in described and not hasattr(cls, "fit")
        if name.startswith("_") or elsewhere:
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property):
            if _ours(value.fget) and value.__doc__:
                properties.append(name)
            continue
        function = getattr(value, "__func__", value)
        # scikit-learn hides methods that an estimator lacks behind a descriptor that holds the function as fn.
        function = getattr(function, "fn", function)
        if inspect.isfunction(function) and function.__doc__ and (_ours(function) or name in INHERITED):
            methods.append(name)
    methods.sort(key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return methods, properties


def _ours(function: object) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] in ("kernelweave", "reproduction")


def guide_pages(name: str, pages: dict[str, str]) -> list[str]:
    """Return the pages of the guide that speak most of a name, the one that does most first."""
    mentions = {page: len(re.findall(rf"\b{name}\b", text)) for page, text in pages.items()}
    spoken = [page for page in sorted(mentions, key=lambda page: (-mentions[page], page)) if mentions[page]]
    return spoken[:MOST_LINKS]


def page_text(module: str, name: str, pages: dict[str, str], described: frozenset[type] = frozenset()) -> str:
    """Return the page of one class or function."""
    value = getattr(importlib.import_module(module), name)
    lines = [name, "=" * len(name), "", f".. currentmodule:: {module}", ""]
    if not inspect.isclass(value):
        lines += [f".. autofunction:: {name}", ""]
    elif issubclass(value, Exception):
        lines += [f".. autoexception:: {name}", ""]
    else:
        methods, properties = own_members(value, described)
        lines += [f".. autoclass:: {name}", ""]
        for title, members in (("Methods", methods), ("Properties", properties)):
            if members:
                lines += [f"   .. rubric:: {title}", "", "   .. autosummary::", "      :nosignatures:", ""]
                lines += [f"      ~{name}.{member}" for member in members]
                lines += [""]
        lines += [f"   .. automethod:: {member}" for member in methods]
        lines += [f"   .. autoproperty:: {member}" for member in properties]
        lines += [""]
    if spoken := guide_pages(name, pages):
        lines += [".. rubric:: In the guide", ""]
        lines += [f"* :doc:`/guide/{page}`" for page in spoken]
        lines += [""]
    lines += [f".. minigallery:: {module}.{name}", "   :add-heading: In the gallery", "   :heading-level: ~", ""]
    return "\n".join(lines)


def write_pages(app) -> None:
    """Write all pages, those that changed alone, and remove pages of names that are gone."""
    folder = HERE / FOLDER
    folder.mkdir(exist_ok=True)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (HERE / "guide").glob("*.md")}
    names = [entry for index in INDEXES for entry in listed((HERE / index).read_text(encoding="utf-8"))]
    values = [getattr(importlib.import_module(module), name) for module, name in names]
    described = frozenset(filter(inspect.isclass, values))
    kept = set()
    for module, name in names:
        path = folder / f"{module}.{name}.rst"
        kept.add(path)
        text = page_text(module, name, pages, described)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in set(folder.glob("*.rst")) - kept:
        path.unlink()


def setup(app):
    """Write the pages before the sources are read."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}

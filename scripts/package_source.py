"""The source of the package as syntax trees: what each module defines and imports, and where a name is defined.

Nothing is imported, so checkouts of any age and layout can be read.
"""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "kernelweave"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


class Imported(NamedTuple):
    """One name of an import statement; ``name`` is None where a whole module is imported."""

    line: int
    module: str
    name: str | None
    bound_to: str


class Definition(NamedTuple):
    """Where a name is defined; ``name`` is None where the name stands for the module itself."""

    module: str
    name: str | None


class Module:
    """One file of the package: its syntax tree, what it defines and what it imports from the package."""

    def __init__(self, path: Path, checkout: Path) -> None:
        self.path = path.relative_to(checkout).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.splitlines()
        tree = ast.parse(self.text)
        self.nodes = sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0))
        folders = path.relative_to(checkout).parts[:-1]
        self.folder = ".".join(folders)
        self.is_package = path.stem == "__init__"
        self.name = self.folder if self.is_package else f"{self.folder}.{path.stem}"
        #: The first folder below the package: solvers, estimators and so on.
        self.layer = folders[1] if len(folders) > 1 else ""
        self.imports = list(self._imports())
        #: What names that were imported from the package stand for.
        self.bindings = {item.bound_to: item for item in self.imports if item.name}
        self.classes: dict[str, ast.ClassDef] = {}
        self.defined: set[str] = set()
        for node in top_level(tree.body):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
                self.defined.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
                self.defined |= {name.id for name in names if isinstance(name.ctx, ast.Store)}

    def _imports(self) -> Iterator[Imported]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                items = [Imported(node.lineno, alias.name, None, alias.asname or alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                levels = self.folder.split(".")
                above = levels[: len(levels) + 1 - node.level] if node.level else []
                source = ".".join([*above, *([node.module] if node.module else [])])
                items = [Imported(node.lineno, source, alias.name, alias.asname or alias.name) for alias in node.names]
            else:
                items = []
            yield from (item for item in items if item.module.split(".")[0] == PACKAGE)

    def place(self, line: int, note: str = "") -> str:
        """Return a line as a place to look at, with a note or its text."""
        return f"{self.path}:{line} {note or self.lines[line - 1].strip()}"

    def code_lines(self) -> int:
        """Return the number of lines that hold more than blanks, comments and docstrings."""
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        return len(lines.difference(*map(docstring_lines, self.nodes)))


class Source:
    """All modules of the package in one checkout."""

    def __init__(self, checkout: Path) -> None:
        files = sorted((checkout / PACKAGE).rglob("*.py"))
        self.modules = {module.name: module for module in (Module(path, checkout) for path in files)}
        if PACKAGE not in self.modules:
            raise SystemExit(f"{checkout} holds no package {PACKAGE}.")

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())

    def find(self, module: str, name: str, tried: frozenset[str] = frozenset()) -> Definition | None:
        """Return where ``name`` is defined when ``module`` is asked for it; re-exports are followed."""
        if f"{module}.{name}" in self.modules:
            return Definition(f"{module}.{name}", None)
        if module not in self.modules or f"{module}.{name}" in tried:
            return None
        asked = self.modules[module]
        if name in asked.bindings:
            source = asked.bindings[name]
            return self.find(source.module, source.name, tried | {f"{module}.{name}"})
        if name in asked.defined:
            return Definition(module, name)
        # A package may load its names lazily; then the one module below it that defines the name is meant.
        below = [other.name for other in self if other.name.startswith(f"{module}.") and name in other.defined]
        return Definition(below[0], name) if asked.is_package and len(below) == 1 else None

    def ancestors(self, definition: Definition) -> set[Definition]:
        """Return a class and all its bases, at any depth, that the package defines."""
        classes = {definition}
        for base in last_names(*self.modules[definition.module].classes[definition.name].bases):
            origin = self.find(definition.module, base)
            if origin and origin != definition and origin.name in self.modules[origin.module].classes:
                classes |= self.ancestors(origin)
        return classes

    def subclasses(self, name: str) -> set[str]:
        """Return the names of a class and of everything derived from it, at any depth, matched by name."""
        family = {name}
        classes = [node for module in self for node in module.classes.values()]
        while more := {node.name for node in classes if last_names(*node.bases) & family} - family:
            family |= more
        return family

    def public_estimators(self) -> dict[str, Definition]:
        """Return the classes below ``estimators`` that the package exports."""
        top = self.modules[PACKAGE]
        exported = {node.value for node in top.nodes if isinstance(node, ast.Constant)} | set(top.bindings)
        layer = [module for module in self if module.layer == "estimators"]
        return {name: Definition(module.name, name) for module in layer for name in module.classes if name in exported}


def top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those under conditions."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from top_level([*node.body, *node.orelse])


def last_names(*nodes: ast.AST) -> set[str]:
    """Return the names in ``a``, ``module.a``, ``a[t]``, ``(a, b)`` and ``a | b``, without their modules."""
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                names.add(name)
            case ast.Tuple(elts=members):
                names |= last_names(*members)
            case ast.BinOp(left=left, right=right):
                names |= last_names(left, right)
            case ast.Subscript(value=value):
                names |= last_names(value)
    return names


def identifiers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield every identifier: all strings in nodes that are not constants; module paths are taken apart."""
    for node in nodes:
        if not isinstance(node, ast.Constant):
            for _, value in ast.iter_fields(node):
                for text in value if isinstance(value, list) else [value]:
                    yield from text.split(".") if isinstance(text, str) else []


def docstring_lines(node: ast.AST) -> range:
    """Return the lines of the docstring of a module, class or function; no lines for other nodes."""
    if not (isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and ast.get_docstring(node, clean=False)):
        return range(0)
    return range(node.body[0].lineno, node.body[0].end_lineno + 1)


def is_private(name: str) -> bool:
    """Return whether a name begins with one underscore."""
    return name.startswith("_") and not name.startswith("__")

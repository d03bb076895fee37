"""Downloading benchmark sets: got, converted, compared with the digests of the catalogue, and only then put in place.

Guarantee   under the name of a set there is never anything but the set: a download is converted in memory, an array
            that differs from the catalogue ends it, and the file appears whole or not at all. Nothing is unpickled.
"""

import difflib
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from kernelweave.datasets import sources
from kernelweave.datasets.checks import check_amount, check_count
from kernelweave.datasets.conversion import Arrays, Target
from kernelweave.datasets.digests import array_digest, content_digest
from kernelweave.datasets.download import File, Network, Progress, get, member
from kernelweave.datasets.folders import data_directory, download_directory
from kernelweave.datasets.npz import read_arrays
from kernelweave.datasets.sources import DataSet, Source
from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.foundation.files import replacement

_MIRROR = "KERNELWEAVE_MIRROR"
_BAR_AFTER_S = 2.0
_OTHERWISE = "Try again later, or copy the file into the data folder yourself; 'kernelweave data check' verifies it."


def fetch(
    names: str | Iterable[str] | None = None,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    force: bool = False,
    timeout: float = 30.0,
    attempts: int = 3,
    mirror: str | None = None,
    progress: bool = True,
) -> dict[str, Path]:
    """Download benchmark sets, so that :func:`load_benchmark` finds them.

    Each set is downloaded from its public source or a copy, converted to a ``.npz`` file, and kept only if its content
    matches the checksum stored in the library. Sets that exist already are verified and not downloaded again.

    Parameters
    ----------
    names : str, iterable of str or None, default=None
        The sets to download; None means all that are public. ``kernelweave data list`` shows them.
    data_dir : path-like or None, default=None
        Folder to download to. None means the folder named by the environment variable ``KERNELWEAVE_DATA`` or, if
        that is not set, the folder ``kernelweave`` in the user's data folder (``XDG_DATA_HOME``, or
        ``~/.local/share``), where :func:`load_benchmark` also looks.
    force : bool, default=False
        Whether to replace a file with different contents, once the download is verified.
    timeout : float, default=30.0
        Seconds to wait for a response from a server.
    attempts : int, default=3
        How often to try an address that does not respond, or sends only a part of the file.
    mirror : str or None, default=None
        Address to use instead of the original ones: ``https://host/path`` becomes ``MIRROR/host/path``. None means
        the one named by the environment variable ``KERNELWEAVE_MIRROR``, if any. A mirror may be plain http.
    progress : bool, default=True
        Whether to show a bar for downloads that take more than two seconds, if standard error is a terminal.

    Returns
    -------
    dict of str to pathlib.Path
        The file of each set.

    Raises
    ------
    ParameterError
        When a name is unknown.
    DataError
        When sets could not be downloaded; names, addresses and reasons are in the message, and all other sets are in
        place.

    Examples
    --------
    >>> from kernelweave.datasets import fetch, load_benchmark
    >>> fetch(["pendigits", "mfeat"])  # doctest: +SKIP
    {'pendigits': ..., 'mfeat': ...}
    >>> load_benchmark("pendigits").data.shape  # doctest: +SKIP
    (10992, 16)
    """
    chosen = chosen_sets(names)
    network = Network(
        check_amount("timeout", timeout, positive=True),
        check_count("attempts", attempts),
        mirror or os.environ.get(_MIRROR) or None,
    )
    root = download_directory(data_dir)
    files: dict[str, Path] = {}
    failures: list[str] = []
    for each in chosen:
        try:
            with _bar(each.name, progress) as on_progress:
                files[each.name] = _fetch_set(each, root, network, force, on_progress)
        except DataError as error:
            failures.append(str(error))
    if failures:
        raise DataError(" ".join(failures))
    return files


def check_sets(names: Iterable[str] | None = None, *, data_dir: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Return for each set whether its file is ``"verified"``, ``"missing"``, or what is wrong with it."""
    root = data_directory(data_dir)
    return {each.name: _state(each, set_file(each, root)) for each in chosen_sets(names, all_sets=True)}


def chosen_sets(names: str | Iterable[str] | None, *, all_sets: bool = False) -> list[DataSet]:
    """Return the sets of these names, each once; without names the public ones, or all."""
    known = sources.catalogue()
    if names is None:
        return [each for each in known.values() if each.sources or all_sets]
    listed = list(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in listed:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=3)
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "'kernelweave data list' shows all."
            raise ParameterError(f"There is no set named {name!r} among {len(known)} that can be fetched: {hint}")
    return [known[name] for name in listed]


def set_file(data_set: DataSet, root: Path) -> Path:
    """Return the file of a set in a data folder: where it is, at any depth, or where it would be put."""
    place = root / f"{data_set.path}.npz"
    if place.exists():
        return place
    return next(iter(sorted(root.rglob(place.name))), place)


def _state(data_set: DataSet, file: Path) -> str:
    if not file.exists():
        return "missing"
    try:
        arrays = read_arrays(file)
        return "verified" if content_digest(arrays) == data_set.target.sha256 else _difference(arrays, data_set.target)
    except DataError as error:
        return str(error)


def _fetch_set(data_set: DataSet, root: Path, network: Network, force: bool, on_progress: Progress) -> Path:
    file = set_file(data_set, root)
    state = _state(data_set, file)
    if state == "verified":
        return file
    if state != "missing" and not force:
        raise DataError(
            f"{file} does not hold the set {data_set.name!r} ({state}): move it away, or replace it with force=True."
        )
    if not data_set.sources:
        raise DataError(
            f"The set {data_set.name!r} is not known to be public and cannot be downloaded; the figures that need it "
            "are among the published results in docs/results.md."
        )
    arrays = _first_good(data_set, network, on_progress)
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacement(file) as partial, open(partial, "wb") as stream:
        np.savez_compressed(stream, **{name: _compact(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    return file


def _first_good(data_set: DataSet, network: Network, on_progress: Progress) -> Arrays:
    """Return the arrays of the first source that has the right ones."""
    failures = []
    for source in data_set.sources:
        try:
            arrays = {**data_set.target.stored_facts(), **_converted(source, data_set.target, network, on_progress)}
        except DataError as error:
            failures.append(str(error))
            continue
        if content_digest(arrays) == data_set.target.sha256:
            return arrays
        failures.append(f"{_place(source, network)}: the content is rejected, {_difference(arrays, data_set.target)}")
    raise DataError(f"The set {data_set.name!r} could not be fetched: {'; '.join(failures)}. {_OTHERWISE}")


def _converted(source: Source, target: Target, network: Network, on_progress: Progress) -> Arrays:
    """Return what a source gives; whatever foreign content does to a reader is a failure of this source alone."""
    try:
        if source.fetcher is not None:
            return _by_fetcher(source, network)
        assert source.read is not None
        contents = _contents(source.files, network, on_progress)
        return source.read(contents, target)
    except DataError as error:
        text = str(error)
        raise DataError(text if "://" in text else f"{_place(source, network)}: {text}") from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{_place(source, network)}: {reason}") from error


def _contents(files: Iterable[File], network: Network, on_progress: Progress) -> list[bytes]:
    """Return the contents of files; an archive that holds several is downloaded once."""
    downloads: dict[str, bytes] = {}
    for file in files:
        if file.address not in downloads:
            downloads[file.address] = get(file, network, on_progress)
    return [member(file, downloads[file.address]) for file in files]


def _by_fetcher(source: Source, network: Network) -> Arrays:
    """Let scikit-learn fetch a set; its connections have no time limit of their own, so that of sockets is set."""
    if network.mirror is not None:
        raise DataError("is not used while a mirror is set")
    assert source.fetcher is not None
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(network.timeout)
    try:
        with tempfile.TemporaryDirectory(prefix="kernelweave-") as folder:
            return source.fetcher(Path(folder), network.attempts)
    finally:
        socket.setdefaulttimeout(before)


def _place(source: Source, network: Network) -> str:
    return network.address(source.files[0].address) if source.files else source.about


def _difference(arrays: Mapping[str, np.ndarray], target: Target) -> str:
    """Return in words the first difference from the set."""
    missing = sorted({*target.arrays, *target.facts} - set(arrays))
    if missing:
        return f"it lacks the array {missing[0]!r} of the set"
    for name, wanted in target.arrays.items():
        if arrays[name].shape != wanted.shape:
            return f"the array {name!r} has shape {arrays[name].shape}, not {wanted.shape}"
        if array_digest(arrays[name]) != wanted.sha256:
            return f"the values of the array {name!r} differ from those of the set"
    return "its names or other arrays differ from those of the set"


def _compact(array: np.ndarray) -> np.ndarray:
    """Return small whole numbers in a byte each; labels stay as they are."""
    small = array.ndim == 2 and array.dtype.kind in "iuf" and array.size and array.min() >= 0 and array.max() <= 255
    as_bytes = array.astype(np.uint8) if small else array
    return as_bytes if small and np.array_equal(as_bytes, array) else array


@contextmanager
def _bar(name: str, shown: bool) -> Iterator[Progress]:
    """Yield what draws a bar on a terminal once a download has taken a while."""
    from tqdm import tqdm

    options = {"desc": name, "unit": "B", "unit_scale": True, "delay": _BAR_AFTER_S, "leave": False}
    with tqdm(disable=None if shown else True, **options) as bar:

        def show(received: int, total: int | None) -> None:
            bar.total = total
            bar.update(received - bar.n)

        yield show

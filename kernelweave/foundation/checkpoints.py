"""Checkpoints: the state of a run in a file, from which the run resumes after an interruption.

A run has stages ("start 3", "start 3/descent"). Of every stage the file holds one state: where it stands, or how it
ended. States are numbers, text, arrays, and lists and dicts of these; results are frozen dataclasses of them. Nothing
in a file is run when it is read.

Layout: ``MAGIC``, the version of the format (4 bytes), the length of the header (8 bytes), the header as JSON, the
arrays one after the other, and the BLAKE2b checksum of everything before it. Numbers are little-endian.
"""

import json
import os
import stat
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from types import UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from kernelweave.foundation.array_types import Array
from kernelweave.foundation.errors import Argument, ParameterError
from kernelweave.foundation.files import claimed, remove_leftovers, write_atomically
from kernelweave.foundation.logged_warnings import warn

MAGIC = b"KWEAVE-C"
VERSION = 1
CHECKSUM_BYTES = 32
#: Least number of seconds between two writes.
INTERVAL = 3.0
#: Writing may take at most this share of the time of a run.
SHARE = 0.02
# Kinds of arrays that a file may hold: truth values and numbers.
_KINDS = "biuf"

State = dict[str, Any]
Result = TypeVar("Result")
P = ParamSpec("P")

REMEDY = "Delete the file, or choose another name."


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """The state of a stage, taken apart: what it holds, with arrays by number, and the arrays."""

    done: bool
    tree: Any
    arrays: tuple[Array, ...]

    @classmethod
    def of(cls, state: Any, *, done: bool) -> "Stage":
        """Return a copy of a state, so that what happens to its arrays later does not matter."""
        arrays: list[Array] = []
        return cls(done, _taken_apart(state, arrays), tuple(arrays))

    def state(self) -> Any:
        """Return the state, with arrays of its own."""
        return _put_together(self.tree, self.arrays)


def to_bytes(identity: Mapping[str, str], stages: Mapping[str, Stage]) -> bytes:
    """Return the content of a checkpoint file."""
    described = {
        name: {
            "done": stage.done,
            "state": stage.tree,
            "arrays": [[array.dtype.str, list(array.shape)] for array in stage.arrays],
        }
        for name, stage in stages.items()
    }
    header = json.dumps({"identity": dict(identity), "stages": described}).encode("ascii")
    sizes = [VERSION.to_bytes(4, "little"), len(header).to_bytes(8, "little")]
    arrays = [array.tobytes() for stage in stages.values() for array in stage.arrays]
    content = b"".join([MAGIC, *sizes, header, *arrays])
    return content + _checksum(content)


def from_bytes(content: bytes) -> tuple[dict[str, str], dict[str, Stage]]:
    """Return identity and stages of a checkpoint file; ValueError says what is wrong with it."""
    body = content[:-CHECKSUM_BYTES]
    if not content.startswith(MAGIC):
        raise ValueError("is not a checkpoint of kernelweave")
    if _checksum(body) != content[-CHECKSUM_BYTES:]:
        raise ValueError("is damaged: its checksum does not match")
    version = int.from_bytes(body[8:12], "little")
    if version != VERSION:
        raise ValueError(f"has format version {version}, but this version of kernelweave reads version {VERSION}")
    try:
        return _parsed(body)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"is damaged: its contents do not match its description ({error})") from error


def _parsed(body: bytes) -> tuple[dict[str, str], dict[str, Stage]]:
    """Return what a file holds, without its checksum."""
    place = 20 + int.from_bytes(body[12:20], "little")
    header = json.loads(body[20:place])
    stages = {}
    for name, described in header["stages"].items():
        arrays = []
        for text, shape in described["arrays"]:
            dtype = np.dtype(text)
            if dtype.kind not in _KINDS:
                raise ValueError(f"holds an array of {dtype}")
            size = int(np.prod(shape, dtype=np.int64))
            arrays.append(np.frombuffer(body, dtype, size, place).reshape(shape))
            place += size * dtype.itemsize
        stages[name] = Stage(described["done"], described["state"], tuple(arrays))
    return header["identity"], stages


def _checksum(content: bytes) -> bytes:
    return blake2b(content, digest_size=CHECKSUM_BYTES).digest()


def _taken_apart(value: Any, arrays: list[Array]) -> Any:
    """Return a value as JSON has it; arrays are copied to a list and named by their place in it."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _KINDS:
            raise TypeError(f"Arrays of {value.dtype} cannot be stored in checkpoints.")
        arrays.append(_compact(value))
        return {"array": len(arrays) - 1, "dtype": value.dtype.str}
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value):
        return {"fields": {each.name: _taken_apart(getattr(value, each.name), arrays) for each in fields(value)}}
    if isinstance(value, Mapping):
        return {"fields": {name: _taken_apart(each, arrays) for name, each in value.items()}}
    if isinstance(value, list | tuple):
        return [_taken_apart(each, arrays) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} cannot be stored in checkpoints.")


def _compact(array: Array) -> Array:
    """Return a copy, whole numbers that are not negative in as few bytes as they need: labels are most of a file."""
    if array.dtype.kind == "i" and array.size and array.min() >= 0:
        return array.astype(np.min_scalar_type(int(array.max())).newbyteorder("<"), order="C")
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=True)


def _put_together(tree: Any, arrays: Sequence[Array]) -> Any:
    if isinstance(tree, list):
        return [_put_together(each, arrays) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if "fields" in tree:
        return {name: _put_together(each, arrays) for name, each in tree["fields"].items()}
    return arrays[tree["array"]].astype(tree["dtype"], order="C", copy=True)


def made(kind: Any, value: Any) -> Any:
    """Return a value as one of a type: lists are tuples and dicts are dataclasses where the type says so."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{each.name: made(hints[each.name], value[each.name]) for each in fields(kind)})
    if get_origin(kind) is tuple:
        return tuple(made(get_args(kind)[0], each) for each in value)
    if get_origin(kind) in (Union, UnionType) and value is not None:
        return made(next(each for each in get_args(kind) if each is not type(None)), value)
    return value


# --- runs -------------------------------------------------------------------------------------------------------------


class Keeper:
    """Keeps the state of one stage of a run; this one keeps nothing, for runs without a checkpoint.

    Solvers take a keeper and go on from what it knows. States are made by a function that is called only when it is
    time to write, or stored at once where a stage within this one builds on them.
    """

    def part(self, name: str) -> "Keeper":
        """Return the keeper of a stage within this one."""
        return self

    def known(self) -> State | None:
        """Return the state from which to go on, None at the beginning."""
        return None

    def keep(self, make_state: Callable[P, State], *args: P.args, **kwargs: P.kwargs) -> None:
        """Write the state of this stage, if it is time to."""

    def store(self, state: State) -> None:
        """Take this state, and write it when it is time to; states of stages within this one are forgotten."""

    def once(self, kind: type[Result], compute: Callable[[], Result]) -> Result:
        """Return the result of the stage: a dataclass, computed unless it is known."""
        return compute()

    def remove(self) -> None:
        """Remove the file: the run has ended."""

    def release(self) -> None:
        """Leave the file to other runs."""


#: The keeper of runs without a checkpoint.
NOTHING = Keeper()


class _FileKeeper(Keeper):
    def __init__(self, file: "_File", stage: str) -> None:
        self._file = file
        self._stage = stage

    def part(self, name: str) -> Keeper:
        return _FileKeeper(self._file, f"{self._stage}/{name}" if self._stage else name)

    def known(self) -> State | None:
        stage = self._file.stages.get(self._stage)
        return None if stage is None or stage.done else stage.state()

    def keep(self, make_state: Callable[P, State], *args: P.args, **kwargs: P.kwargs) -> None:
        if self._file.due():
            self.store(make_state(*args, **kwargs))

    def store(self, state: State) -> None:
        self._file.take(self._stage, Stage.of(state, done=False))

    def once(self, kind: type[Result], compute: Callable[[], Result]) -> Result:
        stage = self._file.stages.get(self._stage)
        if stage is not None and stage.done:
            known: Result = made(kind, stage.state())
            return known
        result = compute()
        self._file.take(self._stage, Stage.of(result, done=True))
        return result

    def remove(self) -> None:
        self._file.remove()

    def release(self) -> None:
        self._file.release()


class _File:
    """The stages of a run, shared by all its threads, and the file they are written to from time to time."""

    def __init__(
        self, path: Path, identity: Mapping[str, str], stages: dict[str, Stage], give_back: Callable[[], None]
    ) -> None:
        self.path = path
        self.stages = stages
        self.release = weakref.finalize(self, give_back)
        self._identity = identity
        self._lock = threading.Lock()
        self._next = time.monotonic() + INTERVAL
        self._warned = False

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() >= self._next

    def take(self, name: str, stage: Stage) -> None:
        """Put a stage in place of what was known about it and about stages within it; write if it is time to."""
        with self._lock:
            kept = {each: state for each, state in self.stages.items() if not each.startswith(f"{name}/")}
            self.stages = {**kept, name: stage}
            if not self.due():
                return
            began = time.monotonic()
            self._write()
            ended = time.monotonic()
            self._next = ended + max(INTERVAL, (ended - began) / SHARE)

    def remove(self) -> None:
        """Remove the file; a run that has ended does not fail for its sake."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            message = f"cannot be removed ({error.strerror}). The fit has ended; delete the file."
            warn(f"checkpoint={str(self.path)!r} {message}", UserWarning)
        remove_leftovers(self.path)
        self.release()

    def _write(self) -> None:
        """Write the file; a full disk does not end the run."""
        try:
            write_atomically(self.path, to_bytes(self._identity, self.stages))
        except OSError as error:
            if not self._warned:
                warn(
                    f"checkpoint={str(self.path)!r} cannot be written ({error.strerror}): "
                    "the run continues, but stopping it "
                    "now would lose the work since the last write. Writing is tried again every few seconds.",
                    UserWarning,
                )
            self._warned = True


def open_checkpoint(path: str | os.PathLike[str], identity: Mapping[str, str]) -> Keeper:
    """Return the keeper of a run, which goes on from the file where there is one.

    ``identity`` says in words, by argument, what the run depends on. ParameterError where the file is that of another
    run, is in use or cannot be read, or where nothing can be written to its folder.
    """
    here = Argument("checkpoint", os.fspath(path))
    give_back = _claimed(path, here)
    try:
        stages = _stages_in(Path(path), here, identity)
    except BaseException:
        give_back()
        raise
    return _FileKeeper(_File(Path(path), identity, stages, give_back), "")


def _claimed(path: str | os.PathLike[str], here: Argument) -> Callable[[], None]:
    """Claim a file that can be read, or written where there is none; return what gives it back."""
    mode = stat.S_IFREG
    try:
        file = Path(os.path.realpath(path))
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = file.stat().st_mode
    except OSError as error:
        raise ParameterError(here, f" cannot be read ({error.strerror}). Choose another name.") from error
    except ValueError as error:  # a null byte
        raise ParameterError(here, f" is not a file name ({error}). Choose another name.") from error
    if stat.S_ISDIR(mode):
        raise ParameterError(here, " is a folder. Name a file in it.")
    if not stat.S_ISREG(mode):
        raise ParameterError(here, " is not a regular file. Choose another name.")
    if not file.parent.is_dir():
        raise ParameterError(
            here, f" lies in a folder that does not exist, {os.fspath(file.parent)!r}. Create the folder."
        )
    try:
        return claimed(file)
    except BlockingIOError as error:
        raise ParameterError(
            here, " is in use: another fit keeps its state there. Wait until it has ended, or choose another name."
        ) from error
    except OSError as error:
        raise ParameterError(
            here,
            f" lies in a folder that cannot be written to ({error.strerror}). Change that, or name a file elsewhere.",
        ) from error


def _stages_in(file: Path, here: Argument, identity: Mapping[str, str]) -> dict[str, Stage]:
    """Return the stages that a file holds, none where there is no file; that of another run is refused."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ParameterError(here, f" cannot be read ({error.strerror}). Choose another name.") from error
    try:
        stored, stages = from_bytes(content)
    except ValueError as error:
        raise ParameterError(here, f" {error}. {REMEDY}") from error
    difference = _difference(stored, identity)
    if difference is not None:
        raise ParameterError(here, f" belongs to another run: {difference}. {REMEDY}")
    return stages


def _difference(stored: Mapping[str, str], identity: Mapping[str, str]) -> str | None:
    """Say what differs first between two runs, None where nothing does."""
    for name in dict.fromkeys([*identity, *stored]):
        there = stored.get(name, "absent")
        now = identity.get(name, "absent")
        if there != now:
            return f"{name} was {there} and is now {now}"
    return None

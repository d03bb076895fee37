"""How long compiling takes: numba compiles a loop when it is first called, unless a file keeps it."""

from types import TracebackType
from typing import Any

from numba.core import event

_events: Any = event  # its functions carry no types


class CompileClock:
    """A context that adds up the seconds that numba compiles while it is open; loops within loops count once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._listener = _events.TimingListener()

    def __enter__(self) -> "CompileClock":
        _events.register("numba:compile", self._listener)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _events.unregister("numba:compile", self._listener)
        if self._listener.done:
            self.seconds += self._listener.duration

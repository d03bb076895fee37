"""What was worked out about a fit, as numbers and as text."""

from dataclasses import asdict, dataclass, field
from typing import Any

# Most lines of the text, and most characters of one.
MOST_LINES = 20
WIDTH = 110
_SIZES = ("bytes", "kB", "MB", "GB", "TB", "PB")
_TIMES = ((1.0, "s"), (60.0, "min"), (3600.0, "h"), (86400.0, "days"), (365.25 * 86400.0, "years"))


@dataclass(frozen=True)
class Plan:
    """What a fit will need. Bytes and seconds are estimates; see ``assumptions``.

    Attributes
    ----------
    method : str
        The class of the estimator.
    n_samples, n_features : int, tuple of int
        The shape, with the columns of every view.
    n_clusters : int or None
        Number of clusters, None where the fit chooses it.
    path : str
        How the fit will work, in words.
    memory : dict of str to int
        Peak bytes of each kind of process.
    memory_parts : dict of str to dict of str to int
        What they are made of.
    bytes_per_step, bytes_per_start : int
        What travels between this process and all workers in a step of a run, and besides that once per start; 0 where
        everything is in one process.
    bytes_read_per_step : int
        What a step reads from files, where these are larger than the memory limit; 0 elsewhere.
    seconds : float or None
        About how long the fit takes, None where no estimate exists.
    seconds_range : tuple of float or None
        From data with clear clusters to data without.
    seconds_parts : dict of str to float
        What the seconds are made of.
    assumptions : tuple of str
        What was assumed where only the data can tell.
    warnings : tuple of str
        Why the run cannot work, or will hardly end, and what to do instead.
    """

    method: str
    n_samples: int
    n_features: tuple[int, ...]
    n_clusters: int | None
    path: str
    memory: dict[str, int] = field(default_factory=dict)
    memory_parts: dict[str, dict[str, int]] = field(default_factory=dict)
    bytes_per_step: int = 0
    bytes_per_start: int = 0
    bytes_read_per_step: int = 0
    seconds: float | None = None
    seconds_range: tuple[float, float] | None = None
    seconds_parts: dict[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON.

        Returns
        -------
        values : dict
            The attributes by name; tuples are lists.
        """
        values = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def __str__(self) -> str:
        lines = [self._title(), *_wrapped("path", self.path)]
        for process, total in self.memory.items():
            lines += _wrapped("memory", f"{size(total)} in {process}: {_shares(self.memory_parts[process], size)}")
        if self.bytes_per_step or self.bytes_per_start:
            lines.append(f"traffic   {size(self.bytes_per_step)} per step, and {size(self.bytes_per_start)} per start")
        if self.bytes_read_per_step:
            lines.append(f"reads     {size(self.bytes_read_per_step)} per step from files")
        lines += self._time()
        for assumption in self.assumptions:
            lines += _wrapped("assumed", assumption)
        return "\n".join(lines[: MOST_LINES - len(self._warned())] + self._warned())

    def _title(self) -> str:
        wide = " + ".join(f"{width:,}" for width in self.n_features)
        if len(self.n_features) > 3 and len(set(self.n_features)) == 1:
            wide = f"{len(self.n_features)} views of {self.n_features[0]:,}"
        clusters = "number of clusters chosen by the fit" if self.n_clusters is None else f"k = {self.n_clusters:,}"
        many = "1 sample" if self.n_samples == 1 else f"{self.n_samples:,} samples"
        return f"{self.method}, {many} x {wide} columns, {clusters}"

    def _time(self) -> list[str]:
        if self.seconds is None or self.seconds_range is None:
            return ["time      there is no estimate for this method"]
        low, high = self.seconds_range
        about = f"about {duration(self.seconds)} ({duration(low)} to {duration(high)})"
        return _wrapped("time", f"{about}: {_shares(self.seconds_parts, duration)}")

    def _warned(self) -> list[str]:
        lines = []
        for warning in self.warnings:
            lines += _wrapped("WARNING", warning)
        return lines[: MOST_LINES - 4]


def _wrapped(name: str, text: str) -> list[str]:
    """Return a text under its name, in lines of bounded width."""
    import textwrap

    head = f"{name:<10}"
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)


def _shares(parts: dict[str, Any], written: Any) -> str:
    """Return what counts of the parts, the largest first."""
    total = sum(parts.values())
    shown = sorted((item for item in parts.items() if item[1] >= 0.01 * total), key=lambda item: -item[1])
    return ", ".join(f"{what} {written(amount)}" for what, amount in shown)


def size(n_bytes: float) -> str:
    """Return bytes in words, as ``1.2 GB``; a kB is 1000 bytes."""
    value = float(n_bytes)
    for name in _SIZES:
        if value < 1000 or name == _SIZES[-1]:
            break
        value /= 1000
    return f"{value:.0f} {name}" if value >= 10 or name == _SIZES[0] else f"{value:.1f} {name}"


def duration(seconds: float) -> str:
    """Return seconds in words, as ``3 min``."""
    unit, name = next((pair for pair in reversed(_TIMES) if seconds >= 2 * pair[0]), _TIMES[0])
    value = seconds / unit
    if value >= 1e6:
        return f"{value:.0e} {name}"
    return f"{value:,.0f} {name}" if value >= 10 else f"{value:.1g} {name}" if value < 1 else f"{value:.1f} {name}"

"""Progress of a long fit: a bar for people, scikit-learn's callbacks for programs."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")


def track(estimator: Any, tasks: Iterable[T], *, total: int, what: str, X: Any = None, y: Any = None) -> Iterator[T]:
    """Yield the tasks of a fit one by one, reporting each as it ends.

    ``estimator.verbose`` >= 1 shows a bar on standard error. Callbacks set through scikit-learn's ``set_callbacks``
    (1.9 and later) see one task per item; one that asks to stop ends the loop after the current task.
    """
    root = _begin(estimator, total, X, y)
    bar = tqdm(tasks, total=total, desc=what, disable=not getattr(estimator, "verbose", 0))
    for task in bar:
        child = _open(estimator, root, what)
        yield task
        if child is not None and child.call_on_fit_task_end(estimator=estimator):
            break
    if root is not None:
        root.call_on_fit_task_end(estimator=estimator, X=X, y=y)


def _begin(estimator: Any, total: int, X: Any, y: Any) -> Any:
    if not hasattr(estimator, "_skl_callbacks"):
        return None
    root = estimator._init_callback_context(max_subtasks=total)
    root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    return root


def _open(estimator: Any, root: Any, what: str) -> Any:
    if root is None:
        return None
    child = root.subcontext(task_name=what)
    child.call_on_fit_task_begin(estimator=estimator)
    return child


class Meter:
    """A bar over steps whose number is not known beforehand; call it with the value to show after each."""

    def __init__(self, estimator: Any, what: str) -> None:
        self._bar = tqdm(desc=what, disable=not getattr(estimator, "verbose", 0))

    def __call__(self, value: float) -> None:
        """Count a step and show its value."""
        self._bar.set_postfix_str(f"{value:.3g}", refresh=False)
        self._bar.update()

    def close(self) -> None:
        """End the bar."""
        self._bar.close()

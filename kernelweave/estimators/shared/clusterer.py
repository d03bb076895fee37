"""The base of every estimator: what scikit-learn, notebooks and programs may ask of each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, Self

from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags

from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin

Sense = Literal["minimize", "maximize"]
#: The parameter that holds others.
NESTED = "kernel_params"


@dataclass(slots=True)
class ClustererTags(Tags):
    """scikit-learn's tags, and which way the objective of the estimator goes."""

    #: ``"minimize"``: the smaller ``objective_`` the better; ``"maximize"``: the larger.
    objective: Sense = "minimize"


class Clusterer(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Base of all estimators of the library.

    A subclass sets ``_objective`` and, where needed, overrides ``_set_input_tags``.
    """

    #: Whether ``objective_`` is minimised or maximised.
    _objective: ClassVar[Sense] = "minimize"
    #: Whether a fit depends on ``random_state``.
    _draws: ClassVar[bool] = True
    #: Whether a fit takes tables that are not in memory as a whole.
    _takes_blocks: ClassVar[bool] = False
    #: Whether a fit can run on a torch device.
    _takes_device: ClassVar[bool] = False
    #: Keeps the state of the fit under way.
    _keeper: Keeper = NOTHING

    def __sklearn_tags__(self) -> ClustererTags:
        tags = super().__sklearn_tags__()
        values = {field.name: getattr(tags, field.name) for field in fields(tags)}
        extended = ClustererTags(**values, objective=self._objective)
        self._set_input_tags(extended.input_tags)
        return extended

    def _set_input_tags(self, tags: Any) -> None:
        """Say what kinds of input the estimator takes; dense and sparse tables unless a subclass says otherwise."""
        tags.sparse = True

    def _n_columns(self, method: str) -> int | None:
        """Return the number of columns of what a method says about samples; None for one value of each."""
        return None if method == "predict" else int(self._n_features_out)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters; scikit-learn asks several times per fit, and the signature stays."""
        return list(super()._get_param_names())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to name the parameters of the kernel as well, such as ``kernel_params__sigma``.

        Returns
        -------
        params : dict
            Values by name.
        """
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(params.get(NESTED), Mapping):
            params |= {f"{NESTED}__{name}": value for name, value in params[NESTED].items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Values by name. ``kernel_params__sigma=0.5`` sets one parameter of the kernel and keeps the others, so that
            searches can go over it; ``kernel_params__words__sigma`` sets that of one view.

        Returns
        -------
        self : estimator
            The estimator itself.
        """
        prefix = f"{NESTED}__"
        nested = {name: value for name, value in params.items() if name.startswith(prefix)}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        if nested and NESTED not in self.get_params(deep=False):
            raise ParameterError(f"{type(self).__name__} has no {NESTED}, which {', '.join(sorted(nested))} would set.")
        for name, value in nested.items():
            places = name.removeprefix(prefix).split("__")
            entries = _with_entry(getattr(self, NESTED), places, value, name)
            setattr(self, NESTED, entries)
        return self

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> Ints:
        """Fit, then return the labels of the training samples.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            What to cluster.
        y : None
            Ignored.
        **fit_params : dict
            Further arguments of ``fit``, such as ``sample_weight`` where it is supported.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of every sample.
        """
        return self.fit(X, y, **fit_params).labels_


def _with_entry(entries: Any, places: list[str], value: Any, name: str) -> dict[str, Any]:
    """Return a copy of ``entries`` with the value at its place; None counts as empty."""
    if entries is not None and not isinstance(entries, Mapping):
        raise ParameterError(
            f"{name} sets an entry of a dict, but {NESTED}={entries!r} is none. Give {NESTED} as a dict, or as a whole."
        )
    place, *inner = places
    known = dict(entries or {})
    known[place] = _with_entry(known.get(place), inner, value, name) if inner else value
    return known

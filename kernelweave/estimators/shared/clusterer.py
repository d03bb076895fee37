"""The base of every estimator: what scikit-learn, notebooks and programs may ask of each of them."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags

from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin

Sense = Literal["minimize", "maximize"]


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
        """Return the number of columns of what a method says of samples; None for one value of each."""
        return None if method == "predict" else int(self._n_features_out)

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

"""Sparse kernels on a device: products with few entries of every row."""

import warnings
from typing import Any

import torch

from kernelweave.backends.protocol import Moves
from kernelweave.backends.torch.array import TorchArray
from kernelweave.backends.torch.backend import TorchBackend


class SparseRows:
    """A symmetric sparse matrix on a device."""

    def __init__(self, backend: TorchBackend, A: Any) -> None:
        self.backend = backend
        with warnings.catch_warnings():  # that torch may still change these tensors
            warnings.simplefilter("ignore")
            self._rows = torch.sparse_csr_tensor(
                backend.tensor(A.indptr, torch.int64),
                backend.tensor(A.indices, torch.int64),
                backend.tensor(A.data, torch.float64),
                size=A.shape,
                check_invariants=False,
            )

    def product(self, H: Any) -> TorchArray:
        """Return A @ H."""
        return TorchArray(self._rows @ self.backend.tensor(H, torch.float64))

    def cluster_sums(self, labels: TorchArray, weights: TorchArray, n_clusters: int) -> TorchArray:
        """Return the (k, n) cluster sums."""
        return TorchArray((self._rows @ self.backend.indicators(labels, weights, n_clusters)).T.contiguous())

    def move_sums(self, sums: TorchArray, moves: Moves, weights: TorchArray) -> None:
        """Update cluster sums in place."""
        signed = torch.zeros(self._rows.shape[1], len(sums), dtype=torch.float64, device=self.backend.device)
        signed[moves.samples.tensor] = self.backend.signed_moves(moves, weights, len(sums), 0, moves.count).T
        sums.tensor += (self._rows @ signed).T

"""What happens to samples before they are clustered: every view brought to one scale."""

from kernelweave.preprocessing.view_scaler import ViewScaler

__all__ = ["ViewScaler"]

"""What happens to samples before they are clustered: every view brought to one scale."""

from kernelweave.estimators._scaling import ViewScaler

__all__ = ["ViewScaler"]

"""What happens to samples before they are clustered: tables as numbers, every view brought to one scale."""

from kernelweave.preprocessing.table_encoder import TableEncoder
from kernelweave.preprocessing.view_scaler import ViewScaler

__all__ = ["TableEncoder", "ViewScaler"]

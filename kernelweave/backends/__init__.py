"""Block primitives: plain NumPy twins and compiled loops. Used by operators alone."""

from kernelweave.backends.registry import ENGINES, Engine, get_engine

__all__ = ["ENGINES", "Engine", "get_engine"]

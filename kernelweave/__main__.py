"""``python -m kernelweave``: the command line without its script."""

import sys

from kernelweave.cli import main

if __name__ == "__main__":
    sys.exit(main())

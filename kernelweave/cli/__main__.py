"""``python -m kernelweave.cli``: the command line without its script."""

import sys

from kernelweave.cli import main

sys.exit(main())

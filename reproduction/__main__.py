"""``python -m reproduction``, from the root of a checkout."""

import sys

from reproduction.command import main

if __name__ == "__main__":
    sys.exit(main())

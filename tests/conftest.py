"""What holds for all tests: the long ones come first, so that no worker waits for the last of them."""

from pathlib import Path

#: Files and folders whose tests take the longest, in seconds rather than milliseconds.
LONG = ("test_docs.py", "golden", "reproduction", "cli")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not set(LONG) & set(Path(item.path).parts))  # stable: the order within stays

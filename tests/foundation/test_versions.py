from importlib import metadata

import pytest

import kernelweave
from kernelweave.foundation.versions import installed_version


def test_versions_are_those_of_the_packages_and_read_once(monkeypatch):
    assert installed_version("kernelweave") == kernelweave.__version__
    assert installed_version("numpy") == metadata.version("numpy")
    monkeypatch.setattr(metadata, "distribution", None)
    assert installed_version("numpy")


def test_a_package_that_is_not_installed_has_none():
    with pytest.raises(metadata.PackageNotFoundError):
        installed_version("no such package")

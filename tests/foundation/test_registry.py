"""Lower layers get functions of upper ones by what they are for, imported when they are asked for."""

import subprocess
import sys

import pytest

import kernelweave
from kernelweave.foundation import registry
from kernelweave.foundation.registry import provide, provided


@pytest.fixture(autouse=True)
def places(monkeypatch):
    monkeypatch.setattr(registry, "_places", dict(registry._places))


def test_what_is_provided_is_found_and_the_last_word_counts():
    provide("a greatest number", "builtins:max")
    assert provided("a greatest number") is max
    provide("a greatest number", "builtins:sum")
    assert provided("a greatest number") is sum


def test_a_module_is_imported_when_it_is_asked_for_and_not_before():
    code = (
        "import sys; from kernelweave.foundation.registry import provide, provided;"
        "provide('colours', 'colorsys:rgb_to_hsv'); print('colorsys' in sys.modules, end=' ');"
        "provided('colours'); print('colorsys' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "True"]


def test_an_unknown_purpose_and_a_place_that_is_none_are_refused():
    with pytest.raises(LookupError, match=r"for 'tea'; known purposes: .*'summary of a model as HTML'"):
        provided("tea")
    for place in ("builtins", "builtins:", ":max", ""):
        with pytest.raises(ValueError, match=r"must be 'package\.module:name'"):
            provide("tea", place)


def test_the_package_provides_the_summary_that_notebooks_show():
    assert provided("summary of a model as HTML") is kernelweave.report.summary_html

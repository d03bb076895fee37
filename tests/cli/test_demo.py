import re
from types import SimpleNamespace

import pytest

from kernelweave.cli.demo import demo
from kernelweave.datasets import load_multiview_digits


def every_other_digit():
    digits = load_multiview_digits()
    views = {name: block[::2] for name, block in digits.views.items()}
    return SimpleNamespace(views=views, target=digits.target[::2])


@pytest.mark.usefixtures("one_thread")
def test_the_demonstration_clusters_five_views_of_digits_and_prints_a_table(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("kernelweave.cli.demo.load_multiview_digits", every_other_digit)  # to save time
    demo(quiet=True)
    captured = capsys.readouterr()
    assert captured.err == ""
    rows = re.findall(r"│ (.+?) +│ +(\d\.\d{3}) │ +(-?\d\.\d{3}) │ +(\d+\.\d{2}) │", captured.out)
    views = {"pixels", "fourier", "profiles", "gradients", "moments"}
    assert views <= {row[0].removeprefix("kernel k-means, ") for row in rows}
    scores = {row[0]: float(row[1]) for row in rows}
    together = scores["multi-view kernel k-means, learned weights"]
    assert together > 0.75
    assert together >= max(scores[f"kernel k-means, {view}"] for view in views)
    assert scores["graph fusion, the default"] > scores["spectral (scikit-learn), neighbours of all views joined"]
    assert scores["graph fusion, number of clusters chosen"] > 0.8
    weights = re.findall(r"│ (\w+) +│ " + r"(\d\.\d\d) +│ " * 4 + r"(\d\.\d\d) +│", captured.out)
    assert {row[0] for row in weights} == views
    for column in range(1, 6):  # equal, learned by kernel k-means, by spectral clustering, and by graph fusion twice
        assert sum(float(row[column]) for row in weights) == pytest.approx(1, abs=0.03)
    assert {row[1] for row in weights} == {"0.20"}
    assert len({row[2] for row in weights}) > 1


def test_the_demonstration_says_what_it_works_on_unless_quiet(capsys):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "kernelweave.cli.demo.methods", lambda views: {"all in one": lambda: SimpleNamespace(labels_=[0] * 1797)}
        )
        demo()
    assert "1,797 handwritten digits" in capsys.readouterr().out

"""``kernelweave plan``."""

import json

import numpy as np
import pandas as pd
import pytest

from kernelweave.cli import main
from tests.plan_rates import rough_rates


@pytest.fixture(autouse=True, scope="module")
def _rough_rates():
    with rough_rates():
        yield


def run(capsys, *arguments):
    """Run the command line; return exit code, standard output and standard error."""
    code = main(["plan", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments):
    """Return the line with which a command is refused."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("kernelweave plan: ")
    return err


def as_json(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_a_plan_is_shown(capsys):
    code, out, err = run(capsys, 10_000, 50, "-k", 10, "--method", "kernel-kmeans", "--kernel", "rbf")
    assert (code, err) == (0, "")
    assert out.startswith("KernelKMeans, 10,000 samples x 50 columns, k = 10\npath ")
    assert "the kernel matrix is stored" in out
    assert len(out.splitlines()) <= 20


def test_a_named_kernel_gives_the_method_that_cluster_takes(capsys):
    assert as_json(capsys, 1000, 5, "-k", 3, "--kernel", "rbf")["method"] == "KernelKMeans"
    assert as_json(capsys, 1000, 5, 6, "-k", 3, "--kernel", "linear")["method"] == "MultiViewKernelKMeans"


def test_options_reach_the_estimator(capsys):
    arguments = (10_000, 50, "-k", 10, "--method", "kernel-kmeans")
    assert "stored" in as_json(capsys, *arguments)["path"]
    for limit in ("100", "100MiB", "0.1GB"):
        assert "recomputed" in as_json(capsys, *arguments, "--memory-limit", limit)["path"]
    assert "features" in as_json(capsys, *arguments, "--set", "approximation=nystroem")["path"]


def test_workers_are_planned_for(capsys):
    options = ("-k", 10, "--kernel", "linear", "--workers", 4, "--worker-memory", "500MB", "--worker-threads", 2)
    found = as_json(capsys, "5,000,000", *[20] * 5, *options)
    assert "4 worker(s) of 2 thread(s)" in found["path"]
    assert found["n_samples"] == 5_000_000
    assert found["n_features"] == [20] * 5
    assert found["bytes_per_step"] > 0
    assert "has 500 MB" in found["warnings"][0]


def test_tables_on_disk_are_planned_for(tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.zeros((100_000, 5), dtype=np.float32))
    options = ("-k", 4, "--kernel", "linear", "--memory-limit", "1MiB", "--from-disk")
    found = as_json(capsys, tmp_path / "X.npy", *options)
    assert "rows read from files" in found["path"]
    assert found["bytes_read_per_step"] == 2 * 4 * 5 * 100_000
    given = as_json(capsys, "1e9", 5, *options, "--float32", "--disk-rate", "500MB")
    assert given["n_samples"] == 10**9
    assert "read at 500 MB/s (given) at every pass" in given["assumptions"][-1]


def test_the_shape_is_read_from_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).random((50, 4))
    np.save("a.npy", values)
    pd.DataFrame(values[:, :3], pd.Index([f"s{i}" for i in range(50)], name="id")).to_csv("b.csv")
    pd.DataFrame(values[:, :2], columns=["x", "y"]).to_parquet("c.parquet", index=False)
    found = as_json(capsys, "a.npy", "b.csv", "c.parquet", "-k", 3, "--kernel", "linear")
    assert (found["n_samples"], found["n_features"]) == (50, [4, 3, 2])
    np.save("d.npy", values[:20])
    assert "a.npy has 50, d.npy has 20" in refused(capsys, "a.npy", "d.npy", "-k", 3)
    np.save("e.npy", values[0])
    assert "1 dimension" in refused(capsys, "e.npy", "-k", 3)


def test_a_method_without_an_estimate_says_so(capsys):
    code, out, _ = run(capsys, 100, 5, 5, "-k", 3, "--method", "nemo")
    assert code == 0
    assert "there is no estimate" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1000,), "give samples and columns"),
        ((0, 5), "both 1 or more"),
        (("data.xlsx",), "NPY, CSV, TSV or Parquet"),
        (("absent.npy",), "No such file"),
        ((1000, 5, "--method", "minmax-kmeans"), "-k is missing"),
        ((1000, 5, "-k", "2:5"), "give one number"),
        ((1000, 5, "-k", 3, "--method", "nothing"), "there is no such method"),
        ((1000, 5, "-k", 3, "--kernel", "gauss"), "gauss"),
        ((1000, 5, "-k", 3, "--kernel", "rbf", "--memory-limit", "much"), "--memory-limit much: write a size"),
        ((1000, 5, "-k", 3, "--worker-memory", "4GB"), "--workers"),
        ((1000, 5.5, "-k", 3), "5.5: give whole numbers"),
        ((1000, 5, "-k", 3, "--kernel", "rbf", "--memory-limit", "4 gigs"), "--memory-limit 4 gigs: write a size"),
        ((1000, 5, "-k", 3, "--kernel", "linear", "--disk-rate", "fast"), "--disk-rate fast: write a size"),
        ((1000, 5, "-k", 3, "--method", "kernel-kmeans", "--set", "n_components=abc"), "n_components"),
        ((1000, 5, "-k", 3, "--kernel", "linear", "--set", "approximation=nystroem"), "not for kernel='linear'"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, *arguments)

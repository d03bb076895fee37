"""Downloads end with the right content in place, or with an error and nothing in place."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from kernelweave.datasets import download, fetch, list_benchmarks, load_benchmark, sources
from kernelweave.datasets.fetching import check_sets
from kernelweave.foundation.errors import DataError, ParameterError
from tests.datasets import file_server
from tests.datasets.file_server import ARRAYS, HOST, TABLE, at, toy


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)
    files = file_server.FileServer()
    yield files
    files.close()


@pytest.fixture
def known(monkeypatch):
    """Let the catalogue hold these sets and no others."""

    def register(*sets):
        monkeypatch.setattr(sources, "catalogue", lambda: {each.name: each for each in sets})

    return register


@pytest.fixture
def get(server, tmp_path):
    def run(names="toy", **options):
        return fetch(names, **{"data_dir": tmp_path / "data", "mirror": server.address, "timeout": 5.0, **options})

    return run


def nothing_left(folder):
    return [path for path in folder.rglob("*") if path.is_file()] == []


def zipped(*members):
    page = io.BytesIO()
    with zipfile.ZipFile(page, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return page.getvalue()


def test_a_good_file_is_converted_verified_and_loaded(server, known, get, tmp_path):
    known(toy(at("/toy.csv")))
    server.put("/toy.csv", TABLE)
    assert get() == {"toy": tmp_path / "data/toy/toy.npz"}
    bunch = load_benchmark("toy", data_dir=tmp_path / "data")
    np.testing.assert_array_equal(bunch.data, ARRAYS["X"])
    assert bunch.target.tolist() == [0, 1, 0]
    assert bunch.target_names.tolist() == ["a", "b"]
    assert check_sets(data_dir=tmp_path / "data") == {"toy": "verified"}
    assert [path.name for path in (tmp_path / "data").rglob("*") if path.is_file()] == ["toy.npz"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (file_server.truncated, "truncated, 10 of 28 bytes"),
        (TABLE.replace(b"4.0", b"4.1"), "the values of the array 'X' differ"),
        (TABLE[:-10], r"'X' has shape \(2, 2\), not \(3, 2\)"),
        (TABLE.replace(b"b", b"c"), "'c' is not a class"),
        (TABLE.replace(b",?", b""), "lines differ"),
        (b"", "empty"),
        (b"<html>not here</html>", "could not be fetched"),
        (b"\xff\xfe", "could not be fetched"),
        (None, "404 Not Found"),
        (lambda handler: handler.send_error(503), "503 Service Unavailable"),
        (b"1,2,a\n" * 200, "larger than the 1000 bytes"),
        (file_server.redirect("http://127.0.0.1:9/other"), "only https is allowed"),
        (file_server.redirect("file:///etc/passwd"), "could not be fetched"),
    ],
    ids=[
        *("truncated", "altered", "short", "other class", "ragged", "empty", "a page", "no text", "missing", "busy"),
        *("too large", "sent elsewhere", "sent to a file"),
    ],
)
def test_a_bad_file_is_refused_with_set_address_and_reason_and_leaves_nothing(
    server, known, get, tmp_path, answer, reason
):
    known(toy(at("/toy.csv")))
    server.put("/toy.csv", answer)
    with pytest.raises(DataError, match=reason) as raised:
        get()
    assert "'toy'" in str(raised.value)
    assert "Try again later" in str(raised.value)
    assert f"{server.address}/{HOST}/toy.csv" in str(raised.value)
    assert nothing_left(tmp_path / "data")


def test_a_server_that_never_answers_is_given_up_in_time(server, known, get, tmp_path):
    known(toy(at("/toy.csv")))
    server.put("/toy.csv", file_server.never)
    with pytest.raises(DataError, match=r"no answer within 0\.1 s \(2 attempts\)"):
        get(timeout=0.1, attempts=2)
    assert len(server.asked) == 2
    assert nothing_left(tmp_path / "data")


def test_without_a_network_the_error_says_so(known, tmp_path):
    known(toy(at("/toy.csv")))
    with pytest.raises(DataError, match=r"'toy'.*the server cannot be reached"):
        fetch("toy", data_dir=tmp_path, mirror="http://127.0.0.1:1", attempts=1)
    assert nothing_left(tmp_path)


def test_what_passes_is_asked_again_and_what_does_not_is_not(server, known, get):
    known(toy(at("/toy.csv")), toy(at("/none.csv"), name="none"))
    busy = file_server.in_turn(lambda handler: handler.send_error(503), file_server.truncated, TABLE)
    server.put("/toy.csv", busy)
    get()
    assert len(server.asked) == 3
    with pytest.raises(DataError, match="404"):
        get("none")
    assert len(server.asked) == 4


def test_redirections_on_the_mirror_are_followed(server, known, get):
    known(toy(at("/toy.csv")))
    server.put("/toy.csv", file_server.redirect(f"{server.address}/{HOST}/moved.csv"))
    server.put("/moved.csv", TABLE)
    assert get()["toy"].exists()


def test_the_next_source_is_asked_where_one_fails(server, known, get):
    known(toy(at("/none.csv"), at("/wrong.csv"), at("/right.csv")))
    server.put("/wrong.csv", TABLE.replace(b"5.0", b"5.5"))
    server.put("/right.csv", TABLE)
    assert get()["toy"].exists()
    assert [path.rpartition("/")[2] for path in server.asked] == ["none.csv", "wrong.csv", "right.csv"]


def test_a_verified_file_is_not_downloaded_again_wherever_it_lies(server, known, get, tmp_path):
    known(toy(at("/toy.csv")))
    place = tmp_path / "data" / "elsewhere" / "toy.npz"
    place.parent.mkdir(parents=True)
    np.savez(place, **ARRAYS, classes=np.array(["a", "b"]))
    assert get() == {"toy": place}
    assert server.asked == []


def test_a_file_that_holds_something_else_stays_unless_force_is_given_and_the_download_is_right(
    server, known, get, tmp_path
):
    known(toy(at("/toy.csv")))
    place = tmp_path / "data" / "toy" / "toy.npz"
    place.parent.mkdir(parents=True)
    np.savez(place, X=np.eye(3), y=np.arange(3), classes=np.array(["a", "b"]))
    before = place.read_bytes()
    with pytest.raises(DataError, match=r"does not hold the set 'toy' .*'X' has shape .*force=True"):
        get()
    assert server.asked == []
    with pytest.raises(DataError, match="404"):
        get(force=True)
    assert place.read_bytes() == before
    server.put("/toy.csv", TABLE)
    get(force=True)
    assert check_sets(data_dir=tmp_path / "data") == {"toy": "verified"}


def test_a_broken_file_and_one_with_pickles_are_told_from_a_set(server, known, get, tmp_path):
    known(toy(at("/toy.csv")))
    place = tmp_path / "data" / "toy.npz"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"no archive")
    assert "cannot be read" in check_sets(data_dir=tmp_path / "data")["toy"]
    np.savez(place, X=np.array([{}], dtype=object))
    assert "cannot be read" in check_sets(data_dir=tmp_path / "data")["toy"]


def test_a_member_is_taken_by_its_name_and_no_other_is_unpacked(server, known, get, tmp_path):
    known(toy(at("/toy.zip", "toy.csv")))
    server.put("/toy.zip", zipped(("../../evil.txt", b"evil"), ("/absolute.txt", b"evil"), ("toy.csv", TABLE)))
    get()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["toy.npz"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zipped(("../toy.csv", TABLE)), "has no member 'toy.csv'"),
        (zipped(("toy.csv", b"0" * 10**5)), "larger than 1000 bytes"),
        (b"PK no archive", "not a readable zip archive"),
    ],
    ids=["evil name", "swollen", "broken"],
)
def test_a_bad_archive_is_refused(server, known, get, tmp_path, content, reason):
    known(toy(at("/toy.zip", "toy.csv")))
    server.put("/toy.zip", content)
    with pytest.raises(DataError, match=reason):
        get()
    assert nothing_left(tmp_path / "data")


def test_an_archive_with_several_members_is_downloaded_once(server, known, get):
    files = tuple(download.File(f"https://{HOST}/toy.zip", member) for member in ("one", "two"))
    known(toy(sources.Source("a server", files, at("/").read)))
    server.put("/toy.zip", zipped(("one", TABLE[:10]), ("two", TABLE[10:])))
    assert get()["toy"].exists()
    assert len(server.asked) == 1


def test_one_failure_does_not_keep_other_sets_away(server, known, get, tmp_path):
    known(toy(at("/none.csv"), name="first"), toy(at("/toy.csv"), name="second"), toy(name="third"))
    server.put("/toy.csv", TABLE)
    with pytest.raises(DataError, match="'first'") as raised:
        get(None)
    assert "'second'" not in str(raised.value)
    assert list_benchmarks(tmp_path / "data") == ["second"]


def test_a_set_that_is_not_public_says_where_its_figures_are(known, get):
    known(toy(name="secret"))
    with pytest.raises(DataError, match=r"'secret' is not known to be public.*docs/results\.md"):
        get("secret")


def test_only_https_is_asked_without_a_mirror(known, tmp_path):
    known(toy(sources.Source("a server", (download.File("http://data.example/toy.csv"),), at("/").read)))
    with pytest.raises(DataError, match="only https is allowed"):
        fetch("toy", data_dir=tmp_path)


def test_the_mirror_can_be_named_by_the_environment(server, known, tmp_path, monkeypatch):
    known(toy(at("/toy.csv")))
    server.put("/toy.csv", TABLE)
    monkeypatch.setenv("KERNELWEAVE_MIRROR", server.address)
    assert fetch("toy", data_dir=tmp_path)["toy"].exists()


def test_without_a_folder_downloads_go_to_the_users_data_and_are_found_there(server, known, get, tmp_path, monkeypatch):
    known(toy(at("/toy.csv")))
    server.put("/toy.csv", TABLE)
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    with pytest.raises(DataError, match="kernelweave data fetch"):
        load_benchmark("toy")
    assert get(data_dir=None) == {"toy": tmp_path / "share/kernelweave/toy/toy.npz"}
    assert load_benchmark("toy").data.shape == (3, 2)
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "named"))
    assert get(data_dir=None) == {"toy": tmp_path / "named/toy/toy.npz"}


def test_arguments_that_cannot_be_used_are_refused(known, get, tmp_path):
    known(toy(at("/toy.csv")))
    with pytest.raises(ParameterError, match=r"no set named 'toi' .*did you mean 'toy'\?"):
        get("toi")
    with pytest.raises(ParameterError, match="timeout=0"):
        get(timeout=0)
    with pytest.raises(ParameterError, match="attempts=0"):
        get(attempts=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is not a directory"):
        get(data_dir=tmp_path / "file")


def test_a_set_of_the_catalogue_that_is_not_here_can_be_fetched_says_load_benchmark(tmp_path):
    with pytest.raises(DataError, match=r"fetch\('pendigits'\) or 'kernelweave data fetch pendigits'"):
        load_benchmark("pendigits", data_dir=tmp_path)


# --- fetchers of scikit-learn


def test_a_fetcher_of_scikit_learn_works_in_a_folder_that_goes_away_and_within_the_time_limit(known, tmp_path):
    import socket

    seen = {}

    def fetcher(folder, attempts):
        seen.update(folder=folder, attempts=attempts, timeout=socket.getdefaulttimeout(), there=folder.is_dir())
        return dict(ARRAYS)

    known(toy(sources.Source("a fetcher", fetcher=fetcher)))
    assert fetch("toy", data_dir=tmp_path, timeout=7.0, attempts=2)["toy"].exists()
    assert (seen["attempts"], seen["timeout"], seen["there"]) == (2, 7.0, True)
    assert not Path(seen["folder"]).exists()
    assert socket.getdefaulttimeout() is None


def test_a_fetcher_that_fails_is_named_and_not_asked_beside_a_mirror(known, get, tmp_path):
    def fetcher(folder, attempts):
        raise OSError("no route")

    known(toy(sources.Source("a fetcher", fetcher=fetcher)))
    with pytest.raises(DataError, match="a fetcher: no route"):
        fetch("toy", data_dir=tmp_path)
    with pytest.raises(DataError, match="a fetcher: is not used while a mirror is set"):
        get()


def test_faces_of_scikit_learn_become_grey_levels(monkeypatch, tmp_path):
    import sklearn.datasets
    from sklearn.utils import Bunch

    levels = np.random.default_rng(0).integers(0, 243, (4, 9))
    faces = Bunch(data=(levels / 242).astype(np.float32), target=np.arange(4))
    monkeypatch.setattr(sklearn.datasets, "fetch_olivetti_faces", lambda **_: faces)
    arrays = sources.catalogue()["olivetti"].sources[0].fetcher(tmp_path, 1)
    np.testing.assert_array_equal(arrays["X"], levels)


def test_tables_of_openml_become_views_and_classes(monkeypatch, tmp_path):
    import sklearn.datasets
    from sklearn.utils import Bunch

    asked = []

    def fetch_openml(*, data_id, **_):
        asked.append(data_id)
        return Bunch(data=np.full((2000, 2), data_id), target=np.array(["1"] * 2000))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    views = sources.catalogue()["mfeat"].sources[-1].fetcher(tmp_path, 1)
    assert asked == [14, 12, 16, 20, 22, 18]
    assert views["y"].tolist() == np.repeat(range(10), 200).tolist()
    table = sources.catalogue()["pendigits"].sources[-1].fetcher(tmp_path, 1)
    assert table["y"].tolist() == [1] * 2000
    assert not table["is_test"].any()

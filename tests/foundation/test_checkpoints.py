"""Checkpoint files: what goes in comes out, damage is noticed, and threads share one file."""

import json
import os
import threading
import time
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pytest

from kernelweave.foundation import checkpoints
from kernelweave.foundation.checkpoints import NOTHING, Stage, from_bytes, made, open_checkpoint, to_bytes
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.files import replacement

RUN = {"the estimator": "Some", "n_clusters": "3"}


@dataclass(frozen=True)
class Inner:
    values: np.ndarray
    text: str


@dataclass(frozen=True)
class Outer:
    labels: np.ndarray
    history: tuple[float, ...]
    parts: tuple[Inner, ...]
    other: Inner | None = None
    converged: bool = True


RESULT = Outer(np.array([0, 2, 1]), (3.0, np.inf), (Inner(np.array([0.1, -0.0]), "a"),), Inner(np.eye(2), "b"), False)


@pytest.fixture
def always(monkeypatch):
    """Make every state a reason to write."""
    monkeypatch.setattr(checkpoints, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", np.inf)


def content_of(states):
    return to_bytes(RUN, {name: Stage.of(state, done=False) for name, state in states.items()})


def with_checksum(body):
    return body + blake2b(body, digest_size=checkpoints.CHECKSUM_BYTES).digest()


def same(one, other):
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            same(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        assert type(one) is type(other)
        assert one == other or one != one


# --- the format ------------------------------------------------------------------------------------------------------


def test_states_come_back_as_they_were():
    state = {
        "labels": np.array([0, 300, 2]),
        "signed": np.array([-1, 5], dtype=np.int32),
        "floats": np.array([[0.1, np.nan], [-np.inf, -0.0]], order="F"),
        "single": np.array([1.5], dtype=np.float32),
        "flags": np.array([True, False]),
        "empty": np.empty((0, 3)),
        "number": np.array(2.0),
        "nested": {"list": [1, 2.5, None, "text", True, [np.arange(3)]], "infinite": np.inf, "nothing": float("nan")},
    }
    identity, stages = from_bytes(content_of({"start 1": state, "start 2/descent": {"x": 1}}))
    assert identity == RUN
    assert list(stages) == ["start 1", "start 2/descent"]
    same(stages["start 1"].state(), state)
    same(stages["start 2/descent"].state(), {"x": 1})


def test_arrays_that_come_back_can_be_written_to():
    stage = from_bytes(content_of({"a": {"x": np.zeros(3)}}))[1]["a"]
    first = stage.state()["x"]
    first[0] = 1.0
    assert stage.state()["x"].tolist() == [0.0, 0.0, 0.0]


def test_a_state_is_a_copy():
    labels = np.array([0, 1])
    floats = np.array([0.5, 1.0])
    stage = Stage.of({"labels": labels, "floats": floats}, done=False)
    labels[:] = 7
    floats[:] = 7.0
    assert stage.state()["labels"].tolist() == [0, 1]
    assert stage.state()["floats"].tolist() == [0.5, 1.0]


def test_labels_take_a_byte_each():
    assert len(content_of({"a": {"labels": np.full(10_000, 200)}})) < 10_600
    assert len(content_of({"a": {"labels": np.full(10_000, 300)}})) > 20_000


def test_results_are_made_again_of_their_types():
    stage = Stage.of(RESULT, done=True)
    again = made(Outer, from_bytes(to_bytes(RUN, {"a": stage}))[1]["a"].state())
    assert isinstance(again.parts[0], Inner)
    assert isinstance(again.other, Inner)
    assert again.history == RESULT.history
    assert again.converged is False
    same(again.labels, RESULT.labels)
    same(again.parts[0].values, RESULT.parts[0].values)
    nothing = Outer(np.zeros(1), (), (), None)
    assert made(Outer, Stage.of(nothing, done=True).state()).other is None


@pytest.mark.parametrize("value", [np.array([None]), np.array(["a"]), object(), {1, 2}, 1j])
def test_what_is_no_number_array_or_text_is_not_kept(value):
    with pytest.raises(TypeError, match="cannot be stored in checkpoints"):
        Stage.of({"x": value}, done=False)


def test_a_file_cut_off_anywhere_is_refused():
    content = content_of({"a": {"labels": np.arange(5), "history": [0.5]}})
    for length in range(len(content)):
        with pytest.raises(ValueError, match=r"not a checkpoint|damaged"):
            from_bytes(content[:length])


def test_a_byte_altered_anywhere_is_noticed():
    content = content_of({"a": {"labels": np.arange(5), "history": [0.5]}})
    for place in range(len(content)):
        altered = bytearray(content)
        altered[place] ^= 1
        with pytest.raises(ValueError, match=r"not a checkpoint|damaged"):
            from_bytes(bytes(altered))
    with pytest.raises(ValueError, match="damaged"):
        from_bytes(content + b"\0")


def test_other_versions_of_the_format_are_refused():
    body = bytearray(content_of({})[: -checkpoints.CHECKSUM_BYTES])
    body[8] = 2
    with pytest.raises(ValueError, match="has format version 2, but this version of kernelweave reads version 1"):
        from_bytes(with_checksum(bytes(body)))


def test_arrays_of_objects_are_not_read():
    header = {"identity": {}, "stages": {"a": {"done": False, "state": {"array": 0}, "arrays": [["|O", [1]]]}}}
    text = json.dumps(header).encode()
    body = checkpoints.MAGIC + (1).to_bytes(4, "little") + len(text).to_bytes(8, "little") + text + bytes(8)
    with pytest.raises(ValueError, match="holds an array of object"):
        from_bytes(with_checksum(body))


# --- keepers ---------------------------------------------------------------------------------------------------------


def test_without_a_checkpoint_nothing_is_kept():
    calls = []
    NOTHING.keep(lambda: calls.append(1))
    NOTHING.store({"x": 1})
    assert NOTHING.known() is None
    assert NOTHING.part("a") is NOTHING
    assert NOTHING.once(int, lambda: 5) == 5
    assert calls == []


def test_a_run_goes_on_from_what_was_written(always, tmp_path):
    path = tmp_path / "run"
    keeper = open_checkpoint(path, RUN)
    assert keeper.part("descent").known() is None
    keeper.part("descent").keep(dict, labels=np.arange(3))
    keeper.part("start 0").once(Outer, lambda: RESULT)
    keeper.release()
    again = open_checkpoint(path, RUN)
    assert again.part("descent").known()["labels"].tolist() == [0, 1, 2]
    assert again.part("start 0").once(Outer, pytest.fail).history == RESULT.history
    assert again.part("start 0").known() is None
    assert again.part("start 1").known() is None
    again.remove()
    assert not path.exists()
    again.remove()


def test_the_end_of_a_run_removes_what_a_killed_write_left(always, tmp_path):
    path = tmp_path / "run"
    with replacement(path) as partial:
        left = partial.name
    path.unlink()
    keeper = open_checkpoint(path, RUN)
    keeper.keep(dict, x=1)
    (tmp_path / left).write_text("half")
    keeper.remove()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_and_no_state_is_made_before_the_time(tmp_path):
    path = tmp_path / "run"
    keeper = open_checkpoint(path, RUN)
    keeper.keep(pytest.fail)
    keeper.part("a").store({"x": 1})
    keeper.part("b").once(Outer, lambda: RESULT)
    assert keeper.part("a").known() == {"x": 1}
    assert not path.exists()


def test_writes_are_apart_by_the_interval(monkeypatch, tmp_path):
    now = [100.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    times = []
    monkeypatch.setattr(checkpoints, "write_atomically", lambda *_: times.append(now[0]))
    keeper = open_checkpoint(tmp_path / "run", RUN)
    for step in range(100):
        now[0] = 100.0 + 0.5 * step
        keeper.keep(dict, x=1)
    assert times[:3] == [103.0, 106.0, 109.0]


def test_slow_writes_are_rare(monkeypatch, tmp_path):
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    times = []

    def slow(*_):
        times.append(now[0])
        now[0] += 1.0

    monkeypatch.setattr(checkpoints, "write_atomically", slow)
    keeper = open_checkpoint(tmp_path / "run", RUN)
    while now[0] < 1000.0:
        keeper.keep(dict, x=1)
        now[0] += 0.25
    assert 15 <= len(times) <= 20  # a second each, 2 % of the time


def test_a_later_state_takes_the_place_of_stages_within_it(always, tmp_path):
    keeper = open_checkpoint(tmp_path / "run", RUN).part("run")
    keeper.part("step 1").keep(dict, x=1)
    keeper.part("step 1").part("deeper").keep(dict, x=2)
    keeper.store({"steps": 1})
    keeper.release()
    other = open_checkpoint(tmp_path / "run", RUN)
    assert other.part("run").known() == {"steps": 1}
    assert other.part("run").part("step 1").known() is None
    assert other.part("run").part("step 1").part("deeper").known() is None


def test_stages_whose_names_begin_alike_do_not_touch_each_other(always, tmp_path):
    keeper = open_checkpoint(tmp_path / "run", RUN)
    keeper.part("start 1").part("descent").keep(dict, x=1)
    keeper.part("start 11").part("descent").keep(dict, x=11)
    keeper.part("start 1").once(Outer, lambda: RESULT)
    assert keeper.part("start 1").part("descent").known() is None
    assert keeper.part("start 11").part("descent").known() == {"x": 11}


def test_threads_share_a_file(always, tmp_path):
    path = tmp_path / "run"
    keeper = open_checkpoint(path, RUN)

    def work(number):
        part = keeper.part(f"start {number}")
        for step in range(20):
            part.part("descent").keep(dict, step=step, labels=np.full(50, number))
        part.once(Outer, lambda: RESULT)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        if path.exists():
            from_bytes(path.read_bytes())
    for thread in threads:
        thread.join()
    _, stages = from_bytes(path.read_bytes())
    assert sorted(stages) == [f"start {number}" for number in range(8)]
    assert all(stage.done for stage in stages.values())


def test_a_full_disk_is_warned_of_once_and_the_run_goes_on(always, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "write_atomically", full)
    keeper = open_checkpoint(tmp_path / "run", RUN)
    with pytest.warns(UserWarning, match=r"checkpoint=.*cannot be written \(No space left on device\)"):
        keeper.keep(dict, x=1)
    keeper.keep(dict, x=2)  # a second warning would be an error
    assert keeper.known() == {"x": 2}


# --- files that are refused ------------------------------------------------------------------------------------------


def refusal(path, identity=RUN):
    """Return the message of a refused file, which is one sentence and a remedy, and stays as it is."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ParameterError) as caught:
        open_checkpoint(path, identity)
    assert (path.read_bytes() if path.is_file() else None) == before
    message = str(caught.value)
    assert message.startswith(f"checkpoint={str(path)!r} ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"n_clusters": "4"}, "n_clusters was 3 and is now 4"),
        ({"the estimator": "Other"}, "the estimator was Some and is now Other"),
        ({"sample_weight": "an array"}, "sample_weight was absent and is now an array"),
    ],
)
def test_the_file_of_another_run_is_refused(always, tmp_path, change, difference):
    path = tmp_path / "run"
    open_checkpoint(path, RUN).keep(dict, x=1)
    message = refusal(path, RUN | change)
    assert message.endswith(f"belongs to another run: {difference}. Delete the file, or choose another name.")


def test_an_argument_that_is_gone_is_a_difference(always, tmp_path):
    path = tmp_path / "run"
    open_checkpoint(path, RUN).keep(dict, x=1)
    assert "n_clusters was 3 and is now absent" in refusal(path, {"the estimator": "Some"})


@pytest.mark.parametrize("content", [b"", b"KWEAVE-C", b"labels\n1\n2\n", bytes(100)])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "run"
    path.write_bytes(content)
    assert refusal(path).endswith("Delete the file, or choose another name.")


def test_folders_and_missing_folders_are_refused_at_once(tmp_path):
    assert refusal(tmp_path).endswith("is a folder. Name a file in it.")
    assert "lies in a folder that does not exist" in refusal(tmp_path / "nowhere" / "run")


@pytest.mark.parametrize(
    ("name", "fault"),
    [("a\0b", r"is not a file name \(.*embedded null .*\)"), ("n" * 300, r"cannot be read \(File name too long\)")],
)
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name, fault):
    with pytest.raises(ParameterError, match=rf"^checkpoint=.* {fault}\. Choose another name\.$"):
        open_checkpoint(str(tmp_path / name), RUN)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
def test_pipes_and_links_to_nowhere_are_refused_before_they_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").endswith("is not a regular file. Choose another name.")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "run")
    assert "lies in a folder that does not exist" in refusal(tmp_path / "link")


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work_begins(monkeypatch, tmp_path):
    def read_only(path):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(checkpoints, "claimed", read_only)
    message = refusal(tmp_path / "run")
    assert "lies in a folder that cannot be written to (Read-only file system)." in message
    assert message.endswith("name a file elsewhere.")


@pytest.mark.parametrize("header", [b"hello", b"{}", b"[]", b"3", b'{"identity": {}, "stages": {"a": 3}}'])
def test_what_only_looks_like_a_checkpoint_is_refused(tmp_path, header):
    path = tmp_path / "run"
    body = checkpoints.MAGIC + (1).to_bytes(4, "little") + len(header).to_bytes(8, "little") + header
    path.write_bytes(with_checksum(body))
    message = refusal(path)
    assert "is damaged: its contents do not match its description" in message
    assert message.endswith("Delete the file, or choose another name.")


# --- one run at a time -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="locks as POSIX has them")
def test_two_runs_at_once_do_not_share_a_file(always, tmp_path):
    path = tmp_path / "run"
    keeper = open_checkpoint(path, RUN)
    message = refusal(path)
    assert message.endswith(
        "is in use: another fit keeps its state there. Wait until it has ended, or choose another name."
    )
    assert open_checkpoint(tmp_path / "other", RUN).known() is None
    keeper.keep(dict, x=1)
    keeper.release()
    assert "belongs to another run" in refusal(path, {"the estimator": "Other"})
    again = open_checkpoint(path, RUN)
    assert again.known() == {"x": 1}
    again.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_removed_does_not_spoil_the_fit(always, monkeypatch, tmp_path):
    def refuse(path, missing_ok):
        raise PermissionError(13, "Permission denied")

    keeper = open_checkpoint(tmp_path / "run", RUN)
    keeper.keep(dict, x=1)
    monkeypatch.setattr(checkpoints.Path, "unlink", refuse)
    with pytest.warns(UserWarning, match=r"run' cannot be removed \(Permission denied\)"):
        keeper.remove()
    monkeypatch.undo()
    assert open_checkpoint(tmp_path / "run", RUN).known() == {"x": 1}

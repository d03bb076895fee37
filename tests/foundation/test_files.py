"""Files are written whole or not at all, with the permissions any other file would have."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from kernelweave.foundation import files
from kernelweave.foundation.files import claimed, remove_leftovers, replacement, write_atomically

NEEDS_POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def mask():
    """Set the user's mask for new files, and take it back."""
    kept = []

    def set_mask(value):
        kept.append(os.umask(value))

    yield set_mask
    for value in reversed(kept):
        os.umask(value)


@pytest.mark.parametrize(
    ("content", "data"),
    [("a line\nand é\n", "a line\nand é\n".encode()), ("\r\n", b"\r\n"), (b"\x00\xff", b"\x00\xff"), ("", b"")],
)
def test_content_is_written_as_it_is_and_replaces_what_was_there(tmp_path, content, data):
    path = tmp_path / "file"
    path.write_text("something that was longer than the new content")
    assert write_atomically(str(path), content) == path
    assert path.read_bytes() == data
    assert names(tmp_path) == ["file"]


def test_until_the_end_the_old_file_is_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacement(path) as partial:
        partial.write_text("new")
        assert partial.parent == path.parent
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError("no"), OSError("no number")])
def test_an_error_in_between_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    def interrupted():
        with replacement(path) as partial:
            partial.write_text("half of the n")
            raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        interrupted()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("fails", ["fsync", "replace", "open"])
def test_a_full_disk_is_named_with_the_file_that_was_asked_for(tmp_path, monkeypatch, fails):
    path = tmp_path / "file"
    path.write_text("old")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *(args[:1] if fails != "fsync" else ()))

    monkeypatch.setattr(files.os, fails, full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(path, "new")
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_disk_that_fills_up_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fill():
        with replacement(path) as partial:
            partial.unlink()
            partial.symlink_to("/dev/full")
            partial.write_text("new")

    with pytest.raises(OSError, match="No space left on device"):
        fill()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_errors_about_other_files_stay_as_they_are(tmp_path):
    other = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as caught, replacement(tmp_path / "file"):
        other.read_text()
    assert caught.value.filename == str(other)


def test_a_missing_folder_a_folder_and_other_things_are_refused_by_name(tmp_path):
    for path, kind in ((tmp_path / "none" / "file", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(kind) as caught:
            write_atomically(path, "new")
        assert caught.value.filename == str(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="Not a regular file"):
            write_atomically(tmp_path / "pipe", "new")
        assert names(tmp_path) == ["pipe"]


@NEEDS_POSIX
@pytest.mark.parametrize("value", [0o022, 0o077, 0o000])
def test_a_new_file_has_the_permissions_the_user_gives_to_new_files(tmp_path, mask, value):
    mask(value)
    plain = tmp_path / "plain"
    plain.write_text("")
    assert mode(write_atomically(tmp_path / "file", "new")) == mode(plain)


@NEEDS_POSIX
@pytest.mark.parametrize("bits", [0o600, 0o644, 0o664, 0o400])
def test_a_replaced_file_keeps_its_permissions(tmp_path, bits):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(bits)
    write_atomically(path, "new")
    assert mode(path) == bits
    assert path.read_text() == "new"


@NEEDS_POSIX
def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real"
    real.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(real)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert names(tmp_path) == ["link", "there"]
    assert names(tmp_path / "there") == ["real"]


def test_the_longest_name_a_folder_takes_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    write_atomically(path, "new")
    assert path.read_text() == "new"


def test_a_file_of_somebody_else_is_never_in_the_way(tmp_path):
    (tmp_path / "file.partial").write_text("mine")
    write_atomically(tmp_path / "file", "new")
    assert (tmp_path / "file.partial").read_text() == "mine"


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(files.os, "fsync", lambda handle: (calls.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(files.os, "replace", lambda *ends: (calls.append("replace"), replace(*ends))[1])
    write_atomically(tmp_path / "file", "new")
    assert calls[:2] == ["fsync", "replace"]


# Leftovers of killed processes

KILLED = """
import os, signal, sys
from kernelweave.foundation.files import claimed, replacement
claimed(sys.argv[1])
with replacement(sys.argv[1]) as partial:
    partial.write_text("half of the n")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_write(path):
    """Have a process killed while it writes; return what it left."""
    before = set(names(path.parent))
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    (left,) = [name for name in set(names(path.parent)) - before if name.endswith(files.SUFFIX)]
    return path.with_name(left)


@NEEDS_POSIX
def test_what_a_killed_process_left_is_removed_by_the_next_write_of_the_same_file(tmp_path):
    left = killed_write(tmp_path / "file")
    assert left.read_text() == "half of the n"
    write_atomically(tmp_path / "other", "new")
    assert left.exists()
    write_atomically(tmp_path / "file", "new")
    assert not left.exists()
    claimed(tmp_path / "file")()  # that of the process is void
    assert names(tmp_path) == ["file", "other"]


@NEEDS_POSIX
def test_what_a_living_writer_has_so_far_is_not_removed(tmp_path):
    path = tmp_path / "file"
    with replacement(path) as partial:
        partial.write_text("first")
        write_atomically(path, "second")
        remove_leftovers(path)
        assert partial.read_text() == "first"
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert names(tmp_path) == ["file"]


@NEEDS_POSIX
def test_a_lock_that_comes_too_late_means_a_new_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    locked = files._locked
    quicker = []

    def late(handle, *, wait):
        if wait and not quicker:
            quicker.extend(each.name for each in tmp_path.iterdir())
            remove_leftovers(path)
            assert names(tmp_path) == []
        return locked(handle, wait=wait)

    monkeypatch.setattr(files, "_locked", late)
    with replacement(path) as partial:
        partial.write_text("new")
        remove_leftovers(path)
        assert partial.exists()
    assert len(quicker) == 1
    assert path.read_text() == "new"


@NEEDS_POSIX
def test_a_file_is_claimed_once_by_whatever_name(tmp_path):
    path = tmp_path / "file"
    (tmp_path / "link").symlink_to(path)
    give_back = claimed(path)
    for name in (path, tmp_path / "link"):
        with pytest.raises(BlockingIOError):
            claimed(name)
    give_back()
    assert names(tmp_path) == ["link"]
    claimed(tmp_path / "link")()
    assert names(tmp_path) == ["link"]


@NEEDS_POSIX
def test_a_claim_of_a_file_that_its_owner_removed_meanwhile_is_made_again(tmp_path, monkeypatch):
    path = tmp_path / "file"
    locked = files._locked
    before = [claimed(path)]

    def late(handle, *, wait):
        while before:
            before.pop()()
        return locked(handle, wait=wait)

    monkeypatch.setattr(files, "_locked", late)
    give_back = claimed(path)
    with pytest.raises(BlockingIOError):
        claimed(path)
    give_back()
    assert names(tmp_path) == []


@NEEDS_POSIX
def test_only_ordinary_files_are_removed_and_missing_folders_do_not_matter(tmp_path):
    path = tmp_path / "file"
    with replacement(path) as partial:
        beginning = partial.name.rsplit("-", 1)[0]
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / f"{beginning}-a.partial").symlink_to(mine)
    (tmp_path / f"{beginning}-b.partial").mkdir()
    os.mkfifo(tmp_path / f"{beginning}-c.partial")
    (tmp_path / f"{beginning}-d.part").write_text("another ending")
    before = names(tmp_path)
    remove_leftovers(path)
    assert names(tmp_path) == before
    remove_leftovers(tmp_path / "nowhere" / "file")


def test_where_there_are_no_locks_nothing_is_removed_and_files_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_locked", lambda handle, *, wait: False)
    path = tmp_path / "file"
    with replacement(path) as partial:
        partial.write_text("first")
        write_atomically(path, "second")
        assert partial.exists()
    assert path.read_text() == "first"
    assert [claimed(path)() for _ in range(2)] == [None, None]
    assert names(tmp_path) == ["file"]


def test_writers_at_the_same_time_leave_one_whole_file(tmp_path):
    path = tmp_path / "file"
    texts = [letter * 200_000 for letter in "abcdefgh"]
    threads = [threading.Thread(target=write_atomically, args=(path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert names(tmp_path) == ["file"]

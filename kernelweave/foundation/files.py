"""Files that are written whole or not at all.

A reader never meets half a file, and what was there before stays until the new one is complete: it is written under
another name in the same folder, flushed to the disk, and only then moved into place.

A process that is killed leaves that other file behind. Its name begins with a digest of the name of the file that it
was for, and whoever writes that file next removes it. Not so what a living process writes: it holds a lock, which the
system gives back when the process ends, however it ends. Locks also hold between containers, where process numbers say
nothing.
"""

import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

#: What temporary files begin and end with. The name is short, so that it fits wherever the name of the file fits.
PREFIX = ".kernelweave-"
SUFFIX = ".partial"

if sys.platform == "win32":

    def _locked(handle: int, *, wait: bool) -> bool:
        """Return False: an open file could not be moved into place there, so nothing is locked and nothing removed."""
        return False

else:
    import fcntl

    def _locked(handle: int, *, wait: bool) -> bool:
        """Lock an open file; BlockingIOError where somebody has the lock, False where the file system has no locks."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            return False
        return True


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file whole or not at all; text is written as UTF-8, line ends as they are.

    An error of the system (a full disk, a missing folder) names the file that was asked for, and leaves in place what
    was there before.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with replacement(path) as partial:
        partial.write_bytes(data)
    return Path(path)


@contextmanager
def replacement(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give an empty file to fill by its path; it takes the place of ``path`` once the block ends without an error.

    The file has the permissions that opening ``path`` would have given it: those of the file it replaces, or those the
    system gives to new files. A symbolic link is followed, as opening it would.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(f"{_beginning(target)}{secrets.token_hex(8)}{SUFFIX}")
    remove_leftovers(target)
    try:
        permissions = _permissions(target)
        with _created(partial):
            yield partial
            _flush(partial)
            if permissions is not None:
                with suppress(OSError):  # file systems without permissions
                    partial.chmod(permissions)
            os.replace(partial, target)
        _flush_folder(target.parent)
    except OSError as error:
        about_others = error.filename is not None and str(error.filename) not in (str(partial), str(target))
        if error.errno is None or about_others:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        partial.unlink(missing_ok=True)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what processes that were killed have left of this file; what a living process writes stays."""
    target = Path(os.path.realpath(path))
    beginning = _beginning(target)
    with suppress(OSError):  # a folder that is missing or cannot be listed
        for name in os.listdir(target.parent):
            if name.startswith(beginning) and name.endswith(SUFFIX):
                _remove_unless_held(target.with_name(name))


def claimed(path: str | os.PathLike[str]) -> Callable[[], None]:
    """Claim a file until the function that is returned is called, or until the process ends.

    BlockingIOError where somebody has claimed it; another error of the system where its folder cannot be written to.
    Where there are no locks, every claim is granted.
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f"{_beginning(target)}lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            locked = _locked(handle, wait=False)
        except BlockingIOError:
            os.close(handle)
            raise
        if not locked or _is_at(handle, lock):
            break
        os.close(handle)  # its owner removed it before it was locked here

    owner = os.getpid()

    def give_back() -> None:
        if os.getpid() == owner:  # not a process that was forked from it
            with suppress(OSError):
                lock.unlink(missing_ok=True)
        os.close(handle)

    if not locked:
        give_back()
        return lambda: None
    return give_back


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _beginning(target: Path) -> str:
    """Return what the names of temporary files for a file begin with."""
    return f"{PREFIX}{blake2b(os.fsencode(target.name), digest_size=8).hexdigest()}-"


@contextmanager
def _created(partial: Path) -> Iterator[None]:
    """Create a file, and hold its lock while the block runs, where the system has locks."""
    while True:
        # with all bits, of which the system takes away what the user's mask forbids
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        locked = _locked(handle, wait=True)
        if not locked or _is_at(handle, partial):
            break
        os.close(handle)  # somebody who cleaned up was quicker than the lock
    if not locked:
        os.close(handle)
    try:
        yield
    finally:
        if locked:
            os.close(handle)


def _remove_unless_held(leftover: Path) -> None:
    """Remove an ordinary file whose lock nobody holds."""
    with suppress(OSError):  # it is gone, held, belongs to somebody else, or is not a file
        handle = os.open(leftover, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode) and _locked(handle, wait=False):
                leftover.unlink()
        finally:
            os.close(handle)


def _permissions(target: Path) -> int | None:
    """Return the permissions of a file that is to be replaced, None where there is none."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file, and cannot be replaced")
    return stat.S_IMODE(mode)


def _flush(file: Path) -> None:
    """Make sure that the content is on the disk before the name is: a crash between the two would leave nothing."""
    with open(file, "r+b") as stream:
        os.fsync(stream.fileno())


def _flush_folder(folder: Path) -> None:
    """Ask for the new name to be on the disk as well, on systems where folders can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

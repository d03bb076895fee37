"""Getting files from addresses: time limits, a limit of size, further attempts, nothing but https.

Truncated answers are recognised by their announced length and asked for again; so are servers that are busy or do not
answer. Members of archives are read by their exact names and never unpacked.
"""

import http.client
import io
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelweave.foundation.errors import DataError

_CHUNK = 1 << 16
_PAUSE_S = 1.0  # before the second attempt; twice that before the third
_LONGEST = 40  # a download may take this many times the time limit of a single answer
_PASSING = (408, 425, 429, 500, 502, 503, 504)  # states of servers that pass

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class File:
    """A file in the network: its address, the member of a zip archive at that address, and the most bytes allowed."""

    address: str
    member: str | None = None
    most: int = 64 << 20


@dataclass(frozen=True)
class Network:
    """How to get files: seconds to wait for an answer, attempts, and a mirror to ask instead of the addresses."""

    timeout: float = 30.0
    attempts: int = 3
    mirror: str | None = None

    def address(self, address: str) -> str:
        """Return where to ask: on a mirror, ``https://host/path`` is ``MIRROR/host/path``."""
        if self.mirror is None:
            return address
        return f"{self.mirror.rstrip('/')}/{address.removeprefix('https://')}"


class _PassingError(Exception):
    """A failure that another attempt may not meet."""


def get(file: File, network: Network, on_progress: Progress | None = None) -> bytes:
    """Return the content at the address of a file, before any member is taken from it.

    Raises
    ------
    DataError
        With the address and the reason.
    """
    address = network.address(file.address)
    if not _may_be_asked(address, network.mirror):
        raise DataError(f"{address}: only https is allowed")
    opener = urllib.request.build_opener(_Redirects(network.mirror))
    for attempt in range(network.attempts):
        try:
            return _once(opener, address, file.most, network.timeout, on_progress or _quiet)
        except _PassingError as failure:
            reason = str(failure)
        if attempt + 1 < network.attempts:
            time.sleep(_PAUSE_S * (attempt + 1))
    tries = "1 attempt" if network.attempts == 1 else f"{network.attempts} attempts"
    raise DataError(f"{address}: {reason} ({tries})")


def member(file: File, content: bytes) -> bytes:
    """Return the file itself: the content, or the member of this exact name of the archive that the content is."""
    if file.member is None:
        return content
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(file.member) as stream:
            data = stream.read(file.most + 1)
    except KeyError:
        raise DataError(f"{file.address}: the archive has no member {file.member!r}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise DataError(f"{file.address}: this is not a readable zip archive ({error})") from error
    if len(data) > file.most:
        raise DataError(f"{file.address}: the member {file.member!r} is larger than {file.most} bytes")
    return data


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections to addresses that may be asked, and to no others."""

    def __init__(self, mirror: str | None) -> None:
        self.mirror = mirror

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not _may_be_asked(newurl, self.mirror):
            raise DataError(f"{req.full_url}: it redirects to {newurl}, but only https is allowed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _may_be_asked(address: str, mirror: str | None) -> bool:
    """Whether an address is https, or on the mirror that the user named."""
    parts = urllib.parse.urlsplit(address)
    on_mirror = mirror is not None and parts.scheme == "http" and parts[:2] == urllib.parse.urlsplit(mirror)[:2]
    return parts.scheme == "https" or on_mirror


def _once(opener: Any, address: str, most: int, timeout: float, on_progress: Progress) -> bytes:
    request = urllib.request.Request(address, headers={"User-Agent": "kernelweave"})
    try:
        with opener.open(request, timeout=timeout) as answer:
            return _content(answer, address, most, timeout, on_progress)
    except urllib.error.HTTPError as error:
        reason = f"the server answers {error.code} {error.reason}"
        error.close()
        if error.code in _PASSING:
            raise _PassingError(reason) from error
        raise DataError(f"{address}: {reason}") from error
    except (TimeoutError, urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _PassingError(_network_reason(error, timeout)) from error


def _content(answer: Any, address: str, most: int, timeout: float, on_progress: Progress) -> bytes:
    announced = answer.headers.get("Content-Length", "")
    total = int(announced) if announced.isdecimal() else None
    too_large = f"{address}: the file is larger than the {most} bytes allowed"
    if total is not None and total > most:
        raise DataError(too_large)
    end = time.monotonic() + _LONGEST * timeout
    content = bytearray()
    while chunk := answer.read(_CHUNK):
        content += chunk
        if len(content) > most:
            raise DataError(too_large)
        if time.monotonic() > end:
            raise _PassingError(f"the download takes longer than {_LONGEST * timeout:g} s")
        on_progress(len(content), total)
    if total is not None and len(content) < total:
        raise _PassingError(f"the answer is truncated, {len(content)} of {total} bytes")
    return bytes(content)


def _network_reason(error: Exception, timeout: float) -> str:
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError) or "timed out" in str(inner):
        return f"no answer within {timeout:g} s"
    text = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return f"the server cannot be reached: {text}"


def _quiet(received: int, total: int | None) -> None:
    """Show nothing."""

"""Files of this machine: listed without leaving the folder that was named, and names that are not UTF-8.

Links are not followed out of the folder unless that is asked for: what lies elsewhere is nobody's here. A name is
bytes; where they are no UTF-8 each such byte becomes a character of Unicode's private use area, so that every path in
cklog is text that can be stored, compared and turned back (`os_name`).
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cklog.destinations import note_named, note_read, watched
from cklog.errors import CklogError, OverBudget, Picklable, SelfCheckFailed, Unreadable, UsageError, first_line
from cklog.holes import size_before_holes
from cklog.masking import masked_options

_SURROGATES = 0xDC00  # where Python puts bytes that are no UTF-8; neither Arrow nor JSON takes them
_PRIVATE = 0xF700
_TO_TEXT = {_SURROGATES + byte: _PRIVATE + byte for byte in range(0x80, 0x100)}
_TO_BYTES = {text: byte for byte, text in _TO_TEXT.items()}
_OF_A_LISTING = _TO_TEXT | {text: "".join(chr(_PRIVATE + byte) for byte in chr(text).encode()) for text in _TO_BYTES}
_KEPT_BY_FILE_SYSTEMS = frozenset({"lost+found"})  # made by mkfs for root alone: nothing of a job's is in it


class FoundEntry(NamedTuple):
    """A file or folder below a root: its relative path, and its size in bytes, None for a folder."""

    path: str
    size: int | None


@dataclass(slots=True)
class Trouble:
    """What could not be looked at: by path, why; and links that were not followed, with where they lead.

    `aliases` are links to folders that are listed where they lie: under a second name nothing would be counted once.
    `names` are links to files, which are followed: no trouble, but who deletes what they lead to deletes it here, too.
    """

    unread: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def take(self, other: Trouble, base: str) -> None:
        """Add what another listing has, whose paths are relative to `base`."""
        for mine, found in self._beside(other):
            mine.update({posixpath.join(base, path): what for path, what in found.items()})

    def take_below(self, other: Trouble, place: str) -> None:
        """Add what another listing has at or below a place."""
        for mine, found in self._beside(other):
            mine.update({p: what for p, what in found.items() if p == place or p.startswith(f"{place}/")})

    def _beside(self, other: Trouble) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
        """Yield each kind of trouble here and there."""
        yield self.unread, other.unread
        yield self.links, other.links
        yield self.aliases, other.aliases
        yield self.names, other.names


class SelfExplained(Picklable, OSError):
    """An error that says by itself, in a line, why something cannot be read."""


class CutSince(SelfExplained):
    """A file that has fewer bytes than when its folder was listed: what it held behind them nobody can read now."""

    def __init__(self, path: str, listed: int, size: int) -> None:
        why = f"it had {listed} bytes when it was listed, and has {size} now: something writes to it. Ask a copy"
        super().__init__(errno.ESTALE, why, path)


class NoFile(SelfExplained):
    """A directory, pipe, socket or device: reading it could wait for ever, never end, or change something."""

    def __init__(self, path: str, mode: int) -> None:
        what = next((name for is_kind, name in _NO_FILES if is_kind(mode)), "no regular file")
        super().__init__(errno.EINVAL, f"it is {what}, and no file", path)


_NO_FILES = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class HasHoles(SelfExplained):
    """A file with data after more holes than are read."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(errno.EFBIG, why, path)


class UnfollowedLink(SelfExplained):
    """A link that leads out of the folder that was named, nowhere or in a circle, and so is not read through."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "it is a link that is not followed", path)


def text_name(name: str) -> str:
    """Return a name as Python gives it as text that can be stored; its bytes that are no UTF-8 in private characters.

    >>> text_name("a"), text_name("caf\\udce9") == "caf\\uf7e9"
    ('a', True)
    """
    return name if name.isascii() else name.translate(_TO_TEXT)


def listed_name(name: str) -> str:
    """Return a name that a listing gave as text, so that two names are never one, and `os_name` gives each back.

    As `text_name`; private characters that the name itself has are its bytes, too, as if they were no UTF-8.

    >>> listed_name("caf\\udce9") == text_name("caf\\udce9"), os.fsencode(os_name(listed_name("\\uf7e9"))).hex()
    (True, 'ef9fa9')
    """
    return name if name.isascii() else name.translate(_OF_A_LISTING)


def os_name(text: str) -> str:
    """Return the name that the operating system knows, of one that `text_name` made.

    >>> os_name(text_name("caf\\udce9")) == "caf\\udce9"
    True
    """
    return text if text.isascii() else text.translate(_TO_BYTES)


def shown_name(text: str, backslash: str = "\\") -> str:
    """Return a text in which the bytes of names that are no UTF-8 are escaped, with `backslash` before each.

    >>> shown_name(text_name("caf\\udce9"))
    'caf\\\\xe9'
    """
    if text.isascii():
        return text
    return "".join(f"{backslash}x{ord(c) - _PRIVATE:02x}" if ord(c) in _TO_BYTES else c for c in text)


def reason(error: OSError) -> str:
    """Return why the operating system refuses a file, and to whom it refuses it.

    >>> reason(FileNotFoundError(errno.ENOENT, "No such file or directory"))
    'it is gone since the folder was listed'
    """
    if error.errno == errno.ENOENT:
        return "it is gone since the folder was listed"
    if isinstance(error, SelfExplained):
        return str(error.strerror)
    return f"{plain_reason(error)}, for {_who()}"


def told_error(error: BaseException) -> CklogError:
    """Return what a person is told of an error that nobody caught: no memory, a file that was refused, or a bug.

    >>> told_error(KeyError("x")).message
    "a bug: KeyError: 'x'"
    >>> told_error(SystemError("error return without exception set")).message
    'memory ran out, it seems: a library failed and did not say why'
    >>> told_error(RuntimeError("can't start new thread")).exit_code
    65
    """
    if isinstance(error, CklogError):
        return error
    unmapped = isinstance(error, ImportError) and "failed to map segment" in str(error)
    if unmapped or isinstance(error, MemoryError):  # of the loader, of Python, or of Arrow's allocator
        return OverBudget("memory ran out")
    if isinstance(error, SystemError) and "without exception set" in str(error):
        return OverBudget("memory ran out, it seems: a library failed and did not say why")
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return OverBudget("no thread could be started: this user's memory or number of processes is at its limit")
    if isinstance(error, FileNotFoundError) and error.filename is None and not _has_working_directory():
        return Unreadable("the working directory no longer exists", "change to a directory that exists")
    if isinstance(error, OSError) and error.errno is not None:
        named = error.filename if isinstance(error.filename, str) else first_line(error)
        return Unreadable(f"{named}: {reason(error)}", "ask again as a user who may read it")
    return SelfCheckFailed(
        masked_options(f"a bug: {type(error).__name__}: {error}"), "run again with -v and report what it prints"
    )


def plain_reason(error: OSError) -> str:
    """Return why a file that was named on the command line cannot be opened, whichever library tried.

    >>> plain_reason(FileNotFoundError(errno.ENOENT, "Failed to open local file 'x'. Detail: ..."))
    'no such file or directory'
    """
    if isinstance(error, SelfExplained):
        return str(error.strerror)
    why = os.strerror(error.errno) if error.errno is not None else str(error)
    return f"{why[:1].lower()}{why[1:]}"


def why_unreadable(path: str) -> str:
    """Return why a file or folder cannot be opened for reading, "" if it can."""
    try:
        if os.access(os_name(path), os.R_OK):
            return ""
        os.stat(os_name(path))
    except OSError as error:
        return reason(error)
    except ValueError:  # a null byte, which no name has
        return "no file can have this name"
    return reason(PermissionError(errno.EACCES, ""))


def absolute(path: str) -> str:
    """Return an absolute path as `os.path.abspath` does, sooner where there is nothing to do.

    >>> absolute("/data/run"), absolute("/data/./run/../logs/")
    ('/data/run', '/data/logs')
    """
    is_done = path.startswith("/") and "//" not in path and "/." not in path and not path.endswith("/")
    return path if is_done else os.path.abspath(path)


def without_file_scheme(path: str) -> str:
    """Return one path for `file:///a`, `file:/a` and `/a`; other schemes stay.

    >>> [without_file_scheme(path) for path in ("file:///mnt/a", "file:/mnt/a", "s3://b/a")]
    ['/mnt/a', '/mnt/a', 's3://b/a']
    """
    if path.startswith("file:"):
        return "/" + path[len("file:") :].lstrip("/")
    return path


def joined(path: str, rest: str) -> str:
    """Return a place below a path or URI; a URI's query stays at its end.

    >>> joined("copy", "chk-1"), joined("s3://b/copy?region=x", "chk-1")
    ('copy/chk-1', 's3://b/copy/chk-1?region=x')
    """
    bare, mark, query = (path, "", "") if is_local(path) else path.partition("?")
    return posixpath.join(bare, rest) + mark + query


def parse_map(option: str) -> tuple[str, str]:
    """Read OLD=NEW of `--map` as a pair.

    >>> parse_map("file:///mnt/prod=copy")
    ('file:///mnt/prod', 'copy')
    """
    old, equals, new = option.partition("=")
    if not (old and equals and new):
        raise UsageError(f"--map {option}: expected OLD=NEW")
    return text_name(old), text_name(new)


def without_query(uri: str) -> str:
    """Return a URI without its query, which says how to get there."""
    return uri.partition("?")[0].rstrip("/")


def is_local(uri: str) -> bool:
    """Return whether a path or URI lies on this machine, by its form.

    >>> is_local("/data/ck"), is_local("file:///data/ck"), is_local("s3://bucket/ck")
    (True, True, False)
    """
    return "://" not in uri or uri.startswith("file://")


def walk(root: str, below: str, follow_links: bool, trouble: Trouble) -> Iterator[FoundEntry]:
    """Yield every file and folder below `root`/`below`, their paths relative to `root`; nothing if it is not there.

    A link to a file is followed if it leads to a place below `root`, or wherever it leads with `follow_links`. A folder
    is listed once, by its own name: links to it from elsewhere below `root` are aliases. What cannot be listed goes to
    `trouble`, by its path from `root` on.
    """
    real_root = os.path.realpath(os_name(root))
    start = os.path.join(root, below) if below else root
    waiting, seen = [(os_name(start), below)], {_identity(os_name(start))}
    later: list[tuple[str, str]] = []  # links to folders, which come behind all that is no link
    written = watched()
    note_named(os_name(root))
    while waiting or later:
        if not waiting:
            later.sort(reverse=True)
            path, linking = later.pop()
            if (identity := _identity(linking)) in seen:
                trouble.aliases[path] = text_name(os.path.realpath(linking))
                continue
            seen.add(identity)
            if identity in written:
                note_read(identity, text_name(linking))
            yield FoundEntry(path, None)
            waiting.append((linking, path))
        folder, inner = waiting.pop()
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            if inner != below:
                trouble.unread[inner] = reason(error)
            continue
        except OSError as error:
            if os.path.basename(folder) not in _KEPT_BY_FILE_SYSTEMS:
                trouble.unread[inner] = reason(error)
            continue
        with entries:
            for entry in entries:
                path = f"{inner}/{listed_name(entry.name)}" if inner else listed_name(entry.name)
                try:
                    linked = entry.is_symlink()
                    if linked and not (follow_links or is_inside(entry.path, real_root)):
                        trouble.links[path] = text_name(os.path.realpath(entry.path))
                        continue
                    about = entry.stat()
                except OSError as error:
                    if error.errno == errno.ENOENT and entry.is_symlink():
                        trouble.links[path] = "nowhere"
                    elif error.errno == errno.ELOOP:
                        trouble.links[path] = "itself, in a circle"
                    elif error.errno != errno.ENOENT:  # a file that is gone by now was never listed
                        trouble.unread[path] = reason(error)
                    continue
                if written and (about.st_dev, about.st_ino) in written:
                    note_read((about.st_dev, about.st_ino), text_name(entry.path))
                if stat.S_ISREG(about.st_mode):
                    if linked:
                        trouble.names[path] = text_name(os.path.realpath(entry.path))
                    size, why = size_before_holes(entry.path, about)
                    if why:
                        trouble.unread[path] = why
                    yield FoundEntry(path, size)
                elif linked and stat.S_ISDIR(about.st_mode):
                    if is_inside(entry.path, real_root):
                        trouble.aliases[path] = text_name(os.path.realpath(entry.path))
                    else:
                        later.append((path, entry.path))
                elif stat.S_ISDIR(about.st_mode):
                    seen.add((about.st_dev, about.st_ino))
                    yield FoundEntry(path, None)
                    waiting.append((entry.path, path))


def is_inside(path: str, real_root: str) -> bool:
    """Return whether a path, with every link in it followed, lies in a folder that is given without links."""
    real = os.path.realpath(path)
    return real == real_root or real.startswith(real_root.rstrip("/") + "/")


def _has_working_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _identity(folder: str) -> tuple[int, int]:
    """Return what tells a folder from every other, by whatever names it is reached."""
    try:
        about = os.stat(folder)
    except OSError:
        return -1, -1
    return about.st_dev, about.st_ino


def _who() -> str:
    """Name the user that this process reads as."""
    try:
        import pwd

        return f"{pwd.getpwuid(os.geteuid()).pw_name} (uid {os.geteuid()})"
    except (ImportError, KeyError, AttributeError):
        return f"uid {os.geteuid()}" if os.name == "posix" else "this user"

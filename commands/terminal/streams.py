"""stdout and stderr as they are: of any encoding, closed, full, or with a reader that has seen enough."""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import sys
from typing import TYPE_CHECKING, TextIO

from cklog.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_FALLBACK = "cklog-fallback"
_DRAWN = {
    **dict.fromkeys("─━–—‐‑−", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╞╡╪╭╮╰╯", "+"),
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "⇒": "=>",
    "…": "...",
    "·": ".",
    "•": "*",
    "×": "x",
    "µ": "u",
    "≤": "<=",
    "≥": ">=",
    "²": "^2",
    "³": "^3",
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    **{chr(dots): "*" for dots in range(0x2801, 0x2900)},  # a curve is drawn in Braille
}
"""What cklog itself draws and writes, in ASCII; any other character is escaped."""

_NOT_ASCII = re.compile("[^\x00-\x7f]")
_BUFFER = 1 << 16


def prepare_streams() -> None:
    """Let stdout and stderr take any text, and fail in one way: `OutputError`, or silence where nobody listens."""
    codecs.register_error(_FALLBACK, _spelled_out)
    sys.stdout = _prepared(sys.stdout, "stdout")
    sys.stderr = _prepared(sys.stderr, "")  # where errors cannot be told, nothing can tell that


def write_out(text: str, *, exact: bool = False) -> None:
    """Write to stdout, all of it; `exact`: what tools read, in UTF-8 whatever the terminal's encoding.

    Raises
    ------
    OutputError : stdout is closed, or takes no more; not where its reader has stopped
    """
    if exact and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    else:
        sys.stdout.write(text)
    sys.stdout.flush()


def encodable_json(text: str) -> str:
    """Return JSON that stdout's encoding can hold, with the same values: else its characters are escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return _NOT_ASCII.sub(lambda found: _escape(found[0]), text)
    return text


class _Prepared(io.TextIOWrapper):
    """A stream that takes any text."""


def _prepared(stream: TextIO | None, name: str) -> TextIO:
    """A stream's stand-in with the same encoding; the same one, if it is no file (as in a test)."""
    if stream is None:  # closed by whoever started this process
        return _over(_Descriptor(None, name), "utf-8", line_buffering=False)
    if isinstance(stream, _Prepared) or not isinstance(stream, io.TextIOWrapper):
        return stream
    try:
        stream.flush()
        number = stream.fileno()
    except OSError:  # a stand-in of somebody else's
        return stream
    at_once = stream.line_buffering or stream.write_through or not name  # what is told is never kept back
    return _over(_Descriptor(number, name), stream.encoding, line_buffering=at_once)


def _over(raw: _Descriptor, encoding: str, *, line_buffering: bool) -> TextIO:
    buffer = io.BufferedWriter(raw, _BUFFER)
    return _Prepared(buffer, encoding, _FALLBACK, newline="\n", line_buffering=line_buffering)


class _Descriptor(io.RawIOBase):
    """A file descriptor that is written to until nobody takes more; `number` None: one that is closed already.

    `name`: how an error is told that is none of the reader's; "": it is not.
    """

    def __init__(self, number: int | None, name: str) -> None:
        self._number, self._name = number, name
        self._ended = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        if self._number is None:
            raise io.UnsupportedOperation("closed")
        return self._number

    def isatty(self) -> bool:
        return self._number is not None and os.isatty(self._number)

    def write(self, data: ReadableBuffer, /) -> int:
        if not self._ended:
            try:
                if self._number is None:
                    raise OSError(errno.EBADF, "it is closed")
                return os.write(self._number, data)
            except BrokenPipeError:
                self._ended = True  # the reader has seen enough
            except OSError as error:
                self._ended = True
                if self._name:
                    raise OutputError(f"{self._name}: {error.strerror}", "-o FILE writes to a file") from None
        return memoryview(data).nbytes


def _spelled_out(error: UnicodeError) -> tuple[str, int]:
    """Characters that an encoding lacks, in ASCII: an error handler of codecs."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(_DRAWN.get(character) or _escape(character) for character in found), error.end


def _escape(character: str) -> str:
    """A character as JSON escapes it.

    >>> _escape("é"), _escape("\\U0001f600")
    ('\\\\u00e9', '\\\\ud83d\\\\ude00')
    """
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))

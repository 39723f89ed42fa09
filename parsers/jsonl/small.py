"""Many small files of JSON lines as one block: decoding costs as much for one line as for a thousand.

Only what decodes as a whole is taken; every other file is read alone, which tells what is wrong with it and where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cklog.arrow_errors import ARROW_ERRORS
from cklog.engine.scan import Split, Together
from cklog.parsers.jsonl.reader import Shape, at_once, shape_of
from cklog.progress import portion
from cklog.storage import open_file

TOGETHER = "cklog.parsers.jsonl.small:read_together"

MOST_BYTES = 64 << 10
"""Of a file that is read with others: a larger one is a block by itself."""


def read_together(splits: Sequence[Split], table: str, columns: tuple[str, ...]) -> Iterator[Together | Split]:
    """Yield the rows of plain files, many at once, and the splits of those that have to be read alone."""
    shape = shape_of(splits[0].path, table, columns, trusted=True)
    if shape.flat is None or not {"_path", "_offset"}.isdisjoint(columns):
        yield from splits
        return
    whole: list[tuple[Split, bytes]] = []
    for split in splits:
        data = _lines_of(split) if split.end - split.start == split.size else None
        if data is None:
            yield split
        else:
            whole.append((split, data))
    yield from _decoded(shape, whole)


def _lines_of(split: Split) -> bytes | None:
    """Return a file that is as it was listed, and ends with a whole line; None: it has to be read with more care."""
    try:
        with portion(split.cost()), open_file(split.uri) as file:
            data: bytes = file.read(split.size + 1)
    except (OSError, *ARROW_ERRORS):
        return None
    return data if len(data) == split.size and data.endswith(b"\n") else None


def _decoded(shape: Shape, files: list[tuple[Split, bytes]]) -> Iterator[Together | Split]:
    """Yield the rows of files that decode together; where one does not, by halves, at last that one alone."""
    if len(files) < 2:
        yield from (split for split, _ in files)
        return
    batch = at_once(shape, b"".join(data for _, data in files))
    lines = {split.path: data.count(b"\n") for split, data in files}
    if batch is not None and batch.num_rows == sum(lines.values()):
        yield Together(batch, lines)
        return
    middle = len(files) // 2
    yield from _decoded(shape, files[:middle])
    yield from _decoded(shape, files[middle:])

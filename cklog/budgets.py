"""Budgets: the most that reading may cost, whatever the input says. Every reader takes them from here.

One number is in front, the memory that `--max-memory` gives: what a reader may hold at once is a share of it. A budget
is far above what real files need and far below what a small file can ask for: 2 kB of Parquet can stand for a gigabyte
of text, 600 kB of Zstandard for 20 GB. Where one is exceeded there is no answer: what was not read might change it.

Memory belongs to the process, and so does the number in force: `use` sets it, once, before anything is read; tasks of
Spark get it with the scan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cklog.errors import OverBudget

INFLATED_PER_BYTE = 256
"""Bytes that a byte of a compressed stream may become, beyond `Budgets.inflated`: logs become 10 to 100."""

ROWS_PER_BYTE = 1024
"""Rows that a byte of a Parquet file may stand for, beyond `Budgets.rows`: constant columns have about 100."""

NESTED = 1_000
"""Containers in containers of a pickle: more than Python's own pickler can write by recursion."""

TUPLES_NESTED = 100
"""Tuples in tuples of a pickle: their hash, which a dict asks for, is computed by recursion."""

TUPLE_PARTS = 10_000
"""Parts of a tuple beyond the bytes of its pickle, those of tuples in it each time: its hash goes through all."""

HASHED_PARTS, HASHED_PER_BYTE = 1 << 20, 16
"""Parts of the keys of dicts and sets in a pickle, and those for each of its bytes: adding a key hashes it.

Tuples do not keep their hash, and one key may be fetched for many dicts.
"""

SAME_HASH = 100
"""Keys of one dict or set in a pickle that have the same hash: the time that adding them takes is their square."""

NUMBER_BYTES = 4_096
"""Bytes of a whole number in a pickle: printing it takes the square of its length."""

JAVA_NESTED = 32
"""Objects in objects of a Java stream: Flink's checkpoint properties nest three deep."""

HANDLES_NESTED = 8
"""Handles in handles of Flink's metadata: those of the changelog hold keyed handles, which in practice hold none."""

JSON_NESTED = 500
"""Objects and lists in one another of a JSON value that is printed again: Python writes it by recursion."""

BATCH_BYTES = 256 << 20
"""Bytes of a batch of Kafka: a length that claims more is none. Kafka's own default is 1 MiB."""

MARKER_BYTES = 64 << 10
"""Bytes that a control batch of Kafka may become; brokers write some 20, and do not compress them."""

RECORDS_PER_BYTE = 4
"""Records that a byte of a Kafka log may stand for, beyond `Budgets.records`."""

PART_BATCHES, PART_BYTES, PART_RECORDS = 1000, 16 << 20, 1 << 18
"""Batches, bytes before and after decompression, and records of Kafka that are decoded at once; a batch may be more."""

SEARCHED_BYTES = 1 << 30
"""Bytes whose CRC is computed in search of one batch of Kafka: false candidates must not cost hours."""

KEYS_KEPT = 1 << 18
"""Keys of committed offsets that are kept understood at a time."""

PAIRS, VALUE_BYTES = 100_000, 1 << 16
"""Pairs of a RocksDB's column family that are told at the most, and bytes of a value: offsets are few and short."""

LEAST_MEMORY = 64 << 20
"""With less, budgets would be below what every run needs."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Shares of the memory that may be used, in bytes; the comments say what they are by default."""

    memory: int = 4 << 30

    @property
    def file(self) -> int:
        """Bytes of a metadata file, which is held whole, and of a line (64 MiB): a larger one is neither."""
        return self.memory // 64

    @property
    def metadata(self) -> int:
        """Bytes of a `_metadata` of Flink (512 MiB): some five million handles."""
        return self.memory // 8

    @property
    def snapshot(self) -> int:
        """Bytes of a pickled snapshot (256 MiB): its values take up to ten times as much."""
        return self.memory // 16

    @property
    def archive(self) -> int:
        """Bytes that a zip archive of Spark's unpacks to (256 MiB): its members are manifests, options and logs."""
        return self.memory // 16

    @property
    def inflated(self) -> int:
        """Bytes that any compressed stream may become (64 MiB), however short it is; then `INFLATED_PER_BYTE` count."""
        return self.memory // 64

    @property
    def json_values(self) -> int:
        """Values in one JSON text (2 Mi): each takes some hundred bytes of Python objects."""
        return self.memory // 2048

    @property
    def table_values(self) -> int:
        """Values in the JSON metadata of a table (16 Mi): 100,000 snapshots of Iceberg have some three million."""
        return self.memory // 256

    @property
    def pages(self) -> int:
        """Bytes of inflated pages that a row group of Parquet needs at once (512 MiB); writers make pages of 1 MiB."""
        return self.memory // 8

    @property
    def batch(self) -> int:
        """Bytes that the texts of one batch of rows take when each is written out (128 MiB, a kilobyte a row)."""
        return self.memory // 32

    @property
    def nested(self) -> int:
        """Values in the lists or maps of one column in a row group (32 Mi)."""
        return self.memory // 128

    @property
    def rows(self) -> int:
        """Rows of any Parquet file (64 Mi), however small it is; then `ROWS_PER_BYTE` count."""
        return self.memory // 64

    @property
    def payload(self) -> int:
        """Bytes that one batch of Kafka may become (128 MiB)."""
        return self.memory // 32

    @property
    def batch_records(self) -> int:
        """Records of one batch of Kafka (1 Mi)."""
        return self.memory // 4096

    @property
    def records(self) -> int:
        """Records of a Kafka log (4 Mi), however short it is; then `RECORDS_PER_BYTE` count."""
        return self.memory // 1024

    @property
    def block(self) -> int:
        """Bytes that a block of RocksDB or LevelDB becomes (64 MiB); data blocks take kB, an index some MB."""
        return self.memory // 64

    @property
    def entries(self) -> int:
        """Blocks that a table of RocksDB or LevelDB may name (4 Mi: at 4 kB each 16 GiB)."""
        return self.memory // 1024

    @property
    def held(self) -> int:
        """Bytes of partial rows that a scan keeps (1 GiB)."""
        return self.memory // 4

    @property
    def files(self) -> int:
        """Files below one folder (1 Mi), and subtasks that a manifest names."""
        return self.memory // 4096


_in_force = Budgets()


def budgets() -> Budgets:
    """Return the budgets in force."""
    return _in_force


def use(chosen: Budgets) -> None:
    """Put budgets into force, for this process."""
    global _in_force
    _in_force = chosen


def over(what: str, budget: int, path: str = "", enough: int = 0) -> OverBudget:
    """Make the error that says what is over which budget; `path` if it is known here, else see `reading`.

    `enough`: bytes of `--max-memory` that would do, where that can be told.

    >>> over("the line", 64 << 20, "channels/a.jsonl").message
    'channels/a.jsonl: the line is over the budget of 67108864 (--max-memory 4096MiB)'
    """
    would_do = f"; some {-(-enough >> 30)}GiB would do" if enough else ""
    return OverBudget(
        f"{what} is over the budget of {budget} (--max-memory {_in_force.memory >> 20}MiB{would_do})", path
    )


def too_much_kept(table: str, kept: int, share: float = 0.0) -> OverBudget:
    """Make the error of partial rows that take more than may be kept: `kept` bytes, of that share of what is read.

    What would do is told from these, as if rows went on as they were; of no share nothing is.

    >>> too_much_kept("channels", 2 << 30, 0.5).message.partition(" is ")[2]
    'over the budget of 1073741824 (--max-memory 4096MiB; some 16GiB would do)'
    """
    enough = int(_in_force.memory * kept / _in_force.held / share) if share else 0
    return over("what has to be kept of its rows", _in_force.held, f"{table}/", enough)


def require(needed: int, what: str) -> None:
    """Raise `OverBudget` for arrays of more bytes than may be used, before they are made; they would be held whole.

    >>> require(8 << 30, "the graph of 9 checkpoints")
    Traceback (most recent call last):
    cklog.errors.OverBudget: the graph of 9 checkpoints needs 8192 MiB (--max-memory 4096MiB)
    """
    if needed > _in_force.memory:
        raise OverBudget(f"{what} needs {-(-needed >> 20)} MiB (--max-memory {_in_force.memory >> 20}MiB)")


@contextmanager
def reading(path: str, offset: int | None = None) -> Iterator[None]:
    """Let an `OverBudget` that is raised inside name the file, and the byte if it is known."""
    try:
        yield
    except OverBudget as error:
        raise error.of(path, offset) from None


def inflated_of(packed: int) -> int:
    """Return how many bytes a compressed stream of `packed` bytes may become."""
    return _in_force.inflated + INFLATED_PER_BYTE * packed


def inflating(parts: Iterable[bytes], packed: int) -> Iterator[bytes]:
    """Yield what a compressed stream of `packed` bytes becomes, as long as that is within the budgets."""
    most = inflated_of(packed)
    left = most
    for part in parts:
        left -= len(part)
        if left < 0:
            raise over(f"what its {packed} compressed bytes become", most)
        yield part


_SHORT_TEXT = 1 << 20
_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
"""A bracket, or a whole text: one that does not end goes to the end, and nothing is tried twice or remembered."""


def check_nesting(text: str) -> None:
    """Raise `OverBudget` for a JSON text that nests deeper than what is printed again may.

    >>> check_nesting('{"a": ["[[[[["]}')
    """
    if text.count("[") + text.count("{") <= JSON_NESTED:
        return
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > JSON_NESTED:
            raise over("how deep the JSON nests", JSON_NESTED)


def check_json(text: bytes | str, most: int | None = None) -> None:
    """Raise `OverBudget` for a JSON text of more values than there may be; counted by what stands between them."""
    most = _in_force.json_values if most is None else most
    if len(text) < min(_SHORT_TEXT, most):
        return
    if isinstance(text, str):
        found = text.count(",") + text.count("[") + text.count("{")
    else:
        found = text.count(b",") + text.count(b"[") + text.count(b"{")
    if found > most:
        raise over("the number of values in the JSON", most)

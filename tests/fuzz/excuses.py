"""What the bytes that a mutation left may excuse: whether somebody could have written just this.

A format without checksums cannot tell a changed number from one that was always there. So each oracle holds of a
change at one of three levels: `strict` (never), `told` (only with a finding that the undamaged folder does not have),
`free` (it may happen unsaid). What lifts an oracle is decided per file, without asking cklog:

- a JSON line that parses, with a `crc32c` that is right or none at all, was forged: all are free. With one that is
  wrong, or no JSON at all, it is damage: all are strict. Lines that are only gone need not be missed: `silent` is free.
- a file with one of Hadoop's `.crc` beside it that still is the old one is damaged: all are strict.
- a compressed file that does not unpack to its end is damaged; else its lines decide. Parquet: a column that pyarrow,
  with page checksums verified, reads, and reads as something else, is forged, whatever became of the other columns.
- a Kafka segment: a batch's checksum covers all but its base offset and leader epoch. A batch with others of those, all
  else as it was, is `told`. A log that ends with a whole batch was written no further: `silent` is free, and so is
  `shorter` where no broker noted how far it had got. If a segment of the subject is damaged, and a mutation took all
  of that away or out of sight, a broker may keep what comes behind it: `told`.
- CheckMate's snapshots are numbered by their order alone. Of one that is gone without a trace, and whose moment no
  other of its worker has, nobody can tell: all are free. Its logs are not flushed to the disk: an empty one is what a
  crash leaves, or a channel without messages, and `silent` is free.
- text files of Kafka's, and pickles of CheckMate's that Python's own list of opcodes reads to the end: forged.
- what lies inside a state store of Kafka Streams is only counted in bytes: `silent` is free.
- Flink's `_metadata` has no checksum: offsets, sizes and names in it may be anything. Its number is in the folder's
  name too, so no line gets newer; and what it stops naming is still there, so nothing gets deletable. What a committer
  has pending may be anything: held against a table, all that follows from it is free. Where none is left, a job can
  only start over, whatever kept it from a restart before.
- a savepoint's folder has no number: with another checkpoint's metadata it is that one, as far as anybody can tell.
  That the other's folder has the wrong number, or that files are missing, tells: `told`.
- without a task's `.checkpoint` Kafka Streams restores all of it from the logs: whatever was wrong with the stores is
  wrong no more, which is `told`. So it is where a chain of the patent's store is cut before the link that was broken.
- files that do not say inside whose they are (CheckMate's, Kafka's, output queues, stores of the patent's layout) and
  have each other's contents: forged.
- a file that is there once more is counted and listed once more: `silent` is free.
- metadata of tables has no checksums, and commits of tables end with the newest file that is there: of one that is gone
  all are free, and so is whatever parses. A file that does not is damage.
- Connect's offsets without a broker, a file that Java wrote, have no checksums: what is as long as it was is forged.
- a query that has to start over does so only where its `metadata` and what it has planned are whole: else they are
  mended first, which is `told`.
- an entry of Spark's `offsets/` and `commits/` under another number is a record, if nothing sums it.

Values that a native record cannot have (`5.0`, `"5"`, `true`, a negative number) are no forgery: strict.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.mutations.change import Change
from tests.fuzz.mutations.fields import hadoop_name, unpacked
from tests.fuzz.mutations.frames import batches, signed
from tests.fuzz.tree import Tree
from tests.oracles.pickle_by_genops import by_genops

ORACLES = ("newer", "later", "shorter", "deletable", "silent")
Level = str
Levels = Mapping[str, Level]

_RANK = {"strict": 0, "told": 1, "free": 2}
STRICT: Levels = dict.fromkeys(ORACLES, "strict") | {"shorter": "told"}
FREE: Levels = dict.fromkeys(ORACLES, "free")
GONE: Levels = {**STRICT, "silent": "free"}
ENDED: Levels = {**GONE, "shorter": "free"}
_UNSUMMED: Levels = {**STRICT, "newer": "told", "later": "told"}
_METADATA: Levels = {**FREE, "newer": "strict", "deletable": "strict"}

_CHECKSUM = re.compile(rb',\s*"crc32c"\s*:\s*"([0-9a-fA-F]{8})"\s*\}\s*$')
_NUMBERS = re.compile(r"(\S+ )*-?\d+(\n(\S+ )*-?\d+)*\n?", re.ASCII)
_SNAPSHOT = re.compile(r"snapshot_(?P<worker>\d+)_.+_(?P<stamp>\d+)\.bin")
_NAMELESS = frozenset({"checkmate", "kafka", "patent"})
"""Families whose files do not say inside what they are called: contents that changed places are forged. So are those of
output queues, whose records do not name their operator; a store of the patent's is its operator's by its name alone."""


def lenient(*levels: Levels) -> Levels:
    """The most lenient level of each oracle."""
    return {name: max((one[name] for one in levels), key=_RANK.__getitem__) for name in ORACLES}


def levels(tree: Tree, family: str, changes: tuple[Change, ...]) -> Levels:
    """At which level each oracle holds of a tree after some changes."""
    found = [STRICT]
    for change in changes:
        free = {name: "free" if name in change.free else STRICT[name] for name in ORACLES}
        found.append(free)
        if not (change.strict or change.unknown):
            found += [_of_file(tree, family, change, name) for name in change.paths]
            if family == "spark" and not any("ck/commits/" in name for name in tree.files):
                planned = any("ck/offsets/" in name for name in change.paths)
                found += [{**STRICT, "newer": "told"}] if planned else []
    if _is_forgotten(tree):
        found.append(FREE)
    return lenient(*found)


def _is_forgotten(tree: Tree) -> bool:
    """Whether the manifest is gone, and all files of an operator's queue: nothing says that there was one."""
    if "job.json" not in tree.touched or os.path.lexists(tree.root / "job.json"):
        return False
    left = {name for name in tree.files if os.path.lexists(tree.root / name)}
    queues, still = (
        {name.split("/")[1] for name in some if name.startswith("outputs/")} for some in (tree.files, left)
    )
    return "job.json" in tree.files and queues != still


def _of_file(tree: Tree, family: str, change: Change, name: str) -> Levels:
    before, after = tree.files.get(name), tree.now(name)
    if family == "kafka" and name.endswith(".log") and (after is None or change.unreadable or _is_link(tree, name)):
        # a log without its first segment begins later, for a broker too
        begins = {**STRICT, "later": "told"} if after is None else STRICT
        return lenient(begins, _of_damage_gone(before or b"", b""))
    if name.endswith("/.checkpoint") and not os.path.lexists(tree.root / name):
        return _UNSUMMED
    if after is None and name.endswith("/_metadata") and not change.unreadable and not _is_link(tree, name):
        left = [other for other in tree.names if other.endswith("/_metadata") and tree.now(other) is not None]
        return STRICT if left else {**STRICT, "newer": "told"}
    if family == "spark" and name.endswith("ck/metadata"):
        return {**_of_text(after or b""), "newer": "told"}
    if name.startswith("table/"):
        return _of_table(name, before, after)
    if after is None and family == "checkmate" and _nothing_shows(tree, name):
        return FREE
    if after is None or before == after:
        return STRICT
    if before is None:
        return FREE if family in ("checkmate", "spark") else STRICT
    if change.kind == "file.swapped" and (family in _NAMELESS or name.startswith("outputs/")):
        return FREE
    if change.kind == "file.swapped" and name.endswith("/_metadata") and "/chk-" not in name:
        return {**_METADATA, "newer": "told"}
    side = hadoop_name(name)
    if side in tree.files and tree.now(side) == tree.files[side]:
        return STRICT
    if name.rpartition("/")[2].startswith(".") and name.endswith(".crc"):
        return GONE
    if name.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")):
        found = _of_lines(tree, change, name, after, open_ended=name.startswith("export/"))
        return lenient(found, _UNSUMMED) if family == "patent" and (before or b"").startswith(after) else found
    if name.endswith(".parquet"):
        return _of_parquet(before, after)
    if name.endswith(".json") or family == "spark":
        return _of_text(after)
    if name.endswith("connect.offsets"):
        return FREE if len(after) == len(before or b"") else STRICT
    if family == "kafka":
        return _of_kafka(tree, name, before, after)
    if family == "flink":
        return _of_flink(tree, name, after)
    return _of_checkmate(name, after) if family == "checkmate" else STRICT


def _of_table(name: str, before: bytes | None, after: bytes | None) -> Levels:
    """Of a file of a table's metadata."""
    if before is None or after is None or before == after:
        return STRICT if before == after else FREE
    if name.endswith(".parquet"):
        return _of_parquet(before, after)
    return _of_text(after) if name.endswith(".json") or "/snapshot-" in name else _of_utf8(after)


def _of_utf8(after: bytes) -> Levels:
    """Of text of any form."""
    try:
        after.decode()
    except UnicodeDecodeError:
        return STRICT
    return FREE


def _is_link(tree: Tree, name: str) -> bool:
    return (tree.root / name).is_symlink()


def _nothing_shows(tree: Tree, name: str) -> bool:
    """Whether a snapshot of CheckMate's is gone, and no other one was taken by its worker at its moment."""
    snapshot = _SNAPSHOT.fullmatch(name.rpartition("/")[2])
    if snapshot is None or os.path.lexists(tree.root / name):
        return False
    found = [_SNAPSHOT.fullmatch(other.rpartition("/")[2]) for other in tree.names if other != name]
    return all(other is None or other.group("worker", "stamp") != snapshot.group("worker", "stamp") for other in found)


def _of_lines(tree: Tree, change: Change, name: str, after: bytes, open_ended: bool) -> Levels:
    """Of JSON lines: what is there now and was not in any of the files that changed.

    `open_ended`: the last record need not end its line, as in what other programs export.
    """
    plain = unpacked(name, after)
    if plain is None:
        return STRICT
    known: set[bytes] = set()
    for path in change.paths:
        known.update((unpacked(path, tree.files.get(path, b"")) or b"").split(b"\n"))
    whole, _, torn = plain.rpartition(b"\n")
    lines = set(whole.rstrip(b"\n").split(b"\n"))  # a bomb may be millions of empty ones
    new = [line for line in lines - known if line.strip()]
    if any(_forged(line) for line in new):
        return FREE
    flaws = {line for line in known if line.strip() and not _forged(line)}
    found = STRICT if new or (torn and not (open_ended and torn in known)) else GONE
    # what was damaged before, and is cut away, no longer stands in the way of what lies in front of it
    return lenient(found, {**STRICT, "newer": "told"}) if flaws and not flaws & lines else found


def _forged(line: bytes) -> bool:
    """Whether a line is a record that somebody may have written."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    if "crc32c" not in found:
        return True
    summed = _CHECKSUM.search(line)
    return summed is not None and int(summed[1], 16) == crc32c.crc32c(line[: summed.start()])


def _of_parquet(before: bytes, after: bytes) -> Levels:
    """Of a file of columns, each of which is read without the others: one may be damaged, and another forged."""
    read, now = _columns(before), _columns(after)
    return FREE if any(read.get(name) != values for name, values in now.items()) else STRICT


def _columns(data: bytes) -> dict[str, list[object]]:
    """The values of each column that pyarrow reads, page checksums verified; none where it does not read the footer."""
    found: dict[str, list[object]] = {}
    try:
        footer = pq.read_metadata(pa.BufferReader(data))
        names = footer.schema.to_arrow_schema().names
    except Exception:  # whatever pyarrow says of it
        return found
    for name in names:
        try:
            column = pq.read_table(pa.BufferReader(data), columns=[name], page_checksum_verification=True)
            if column.num_rows == footer.num_rows:  # a page that lies ends a column early
                found[name] = column.column(name).to_pylist()
        except Exception:
            continue
    return found


def _of_text(after: bytes) -> Levels:
    """Of JSON, whole or by lines, with a version in front."""
    try:
        text = after.decode()
    except UnicodeDecodeError:
        return STRICT
    lines = text.split("\n")
    body = lines[1:] if re.fullmatch(r"v\d+", lines[0]) else lines
    for pieces in ([text], body[:-1] if len(body) > 1 and not body[-1] else body):
        try:
            for piece in pieces:
                json.loads(piece)
        except (ValueError, RecursionError):
            continue
        return FREE
    return STRICT


def _of_kafka(tree: Tree, name: str, before: bytes, after: bytes) -> Levels:
    if "/rocksdb/" in name:
        return GONE
    if not name.endswith(".log"):
        return _of_numbers(after)
    ends = {0, *(end for _, end in batches(before))}
    cut = (GONE if _is_noted(tree, name) else ENDED) if before.startswith(after) and len(after) in ends else STRICT
    return lenient(_of_base_offsets(before, after), _of_damage_gone(before, after), cut)


def _is_noted(tree: Tree, name: str) -> bool:
    """Whether a broker's own file still tells how far a log's partition was written."""
    folder = name.rpartition("/")[0]
    broker, _, partition = folder.rpartition("/")
    noted = f"{broker}/recovery-point-offset-checkpoint".lstrip("/")
    topic, _, number = partition.rpartition("-")
    return f"\n{topic} {number} ".encode() in (tree.now(noted) or b"")


def _of_base_offsets(before: bytes, after: bytes) -> Levels:
    """Of batches whose summed bytes are as they were, at another offset or of another leader."""
    fronts: dict[bytes, set[bytes]] = {}
    for first, end in batches(before):
        fronts.setdefault(_summed(before, first, end), set()).add(_unsummed(before, first))
    for first, end in batches(after):
        known = fronts.get(_summed(after, first, end))
        if known and _unsummed(after, first) not in known:
            return _UNSUMMED
    return STRICT


def _unsummed(segment: bytes, first: int) -> bytes:
    """What of a batch no checksum covers: its base offset, and its leader's epoch."""
    return segment[first : first + 8] + segment[first + 12 : first + 16]


def _summed(segment: bytes, first: int, end: int) -> bytes:
    return segment[first + 8 : first + 12] + segment[first + 16 : end]


def _of_damage_gone(before: bytes, after: bytes) -> Levels:
    """Of a segment that was damaged already, and has nothing of that any more."""
    was_cut = before.startswith(after) and len(after) < len(before)  # a torn end hides what lay behind it
    return _UNSUMMED if _is_flawed(before) and not _is_flawed(after, was_cut) else STRICT


def _is_flawed(segment: bytes, may_be_torn: bool = False) -> bool:
    """Whether a segment holds anything but whole batches with the right checksums."""
    summed = bytearray(segment)
    for first, end in batches(segment):
        signed(summed, first, end)
    return summed != segment or (not may_be_torn and max([0, *(end for _, end in batches(segment))]) != len(segment))


def _of_numbers(after: bytes) -> Levels:
    """Of text that holds names and numbers."""
    try:
        text = after.decode()
    except UnicodeDecodeError:
        return STRICT
    words = re.sub("[ \t\v\f]+(?=\n|$)", "", re.sub("[ \t\v\f]+", " ", text))  # blanks, as a broker sees them
    return FREE if _NUMBERS.fullmatch(words) or "=" in text else STRICT


def _of_checkmate(name: str, after: bytes) -> Levels:
    at = 0
    try:
        while at < len(after):
            read = by_genops(after, at)
            if read.how != "value":
                return STRICT
            at = read.at
    except Exception:  # a second reader that gives up has not read it
        return STRICT
    return FREE if after else GONE if "-logs/" in name else STRICT


def _of_flink(tree: Tree, name: str, after: bytes) -> Levels:
    if name.endswith("_metadata"):
        pends = any(other.startswith("table/") for other in tree.files)
        return {**_METADATA, "newer": "free"} if pends else _METADATA
    return FREE if name.endswith(".log") else STRICT

"""Mutated segments of Kafka's: `fuzz_kafka.py [--count N] [--seed S] [FOLDER]`; one line of what came of them.

FOLDER is searched for `.log` files of segments; without it, seeds are made by the builder of the tests: every format
with every codec, markers, gaps, headers. A mutation flips bits, cuts, repeats or swaps stretches, puts in a stretch of
another seed, or writes a large number where a length may be; one file has up to four. Half of the files get the right
checksums again, as a hostile writer would give them. Headers, headers without checksums, records, and the reader of
output queues must all read each file without an error, within a second together, and in memory of 20 times its size
and 8 MB, that of Arrow included. Exits with 1, naming the first cases, if one does not.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
import traceback
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import crc32c
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.mutations import mutated
from cklog.engine.scan import Damage, Split
from cklog.inputs.record_batches import BATCHES
from cklog.model.schemas import OUTPUTS
from cklog.parsers.kafka import headers as kafka_headers
from cklog.parsers.kafka import table as kafka_table
from cklog.parsers.kafka.groups import read_records
from tests.builders import kafka as kb
from tests.builders.kafka import Row

SECONDS, BYTES_TIMES, BYTES_MORE = 1.0, 20, 8 << 20
MEASURED_EVERY = 10
"""Tracing allocations takes time: it is done in a run of its own."""

NAME = f"{0:020}.log"


def seeds_made() -> list[bytes]:
    """A segment for each format and codec, one of transactions, and one of everything behind each other."""
    dice = random.Random(0)
    rows = [
        Row(dice.randbytes(dice.randrange(90)), b"key %d" % i, 1_700_000_000_000 + 40 * i, [("h", b"x")] * (i % 3))
        for i in range(60)
    ]
    rows[7:9] = [Row(None, b"gone", 5), Row(b"", None, 6)]
    made = [
        b"".join(kb.batch(base, rows[base % 7 :][:size], codec) for base, size in ((0, 9), (20, 40), (90, 1)))
        for codec in kb.CODECS
    ]
    made += [
        b"".join(kb.messages(base, rows[base % 7 :][:size], magic, codec) for base, size in ((0, 9), (9, 30)))
        for magic in (0, 1)
        for codec in ("none", "gzip", "snappy", "xerial", "lz4")
    ]
    sent = [kb.batch(10 * i, rows[:4], flags=kb.TRANSACTIONAL, producer=i % 2) for i in range(4)]
    ended = [kb.marker(10 * i + 5, i % 3, i % 2) for i in range(4)]
    made.append(b"".join(one + end for one, end in zip(sent, ended, strict=True)) + kb.batch(50, [], last_delta=9))
    made.append(b"".join(kb.batch(i, [kb.cec(i, i)]) for i in range(40)))
    return [*made, b"".join(made)]


def signed(data: bytearray) -> bytearray:
    """The same with the right checksum in each batch that its length leads to."""
    at = 0
    while at + 26 <= len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        if not at + 26 <= end <= len(data):
            break
        if data[at + 16] == 2:
            struct.pack_into(">I", data, at + 17, crc32c.crc32c(bytes(data[at + 21 : end])))
        else:
            struct.pack_into(">I", data, at + 12, zlib.crc32(data[at + 16 : end]))
        at = end
    return data


def found_by(split: Split) -> Iterator[object]:
    """What every reader finds, damage among it."""
    columns = (*BATCHES.names, "_path", "_offset")
    yield from kafka_headers.read(split, "batches", columns)
    yield from kafka_headers.read_unchecked(split, "batches", columns)
    yield from (one if isinstance(one, Damage) else one.records.to_table() for one in read_records(split))
    yield from kafka_table.read(split, "outputs", (*OUTPUTS.names, "_path", "_offset"))


def outcome(split: Split) -> str:
    """What came of a file: batches, damage, or both; nothing is held."""
    rows, damage = 0, 0
    for found in found_by(split):
        if isinstance(found, Damage):
            assert found.offset is None or 0 <= found.offset < split.size
            assert found.count > 0, found
            damage += 1
        else:
            rows += 1
    assert rows or damage or not split.size, "neither batches nor damage"
    return " and ".join(word for word, n in (("batches", rows), ("damage", damage)) if n) or "nothing"


def tried(split: Split, measure: bool) -> tuple[str, str, float]:
    """What came of a file, what is wrong with that, and the seconds that it took."""
    began = time.perf_counter()
    try:
        came = outcome(split)
        took = time.perf_counter() - began
        peak = memory(split) if measure else 0
    except Exception:
        return "error", traceback.format_exc(), time.perf_counter() - began
    wrong = f"{took:.2f} s" if took > SECONDS else ""
    if peak > BYTES_TIMES * split.size + BYTES_MORE:
        wrong = f"{peak} bytes of memory for {split.size}"
    return came, wrong, took


def memory(split: Split) -> int:
    """The most bytes that Python, numpy and Arrow hold while a file is read."""
    pool = pa.proxy_memory_pool(pa.system_memory_pool())
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        outcome(split)
        return int(tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0))
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(pa.system_memory_pool())


def main() -> None:
    """One line; the first cases that went wrong behind it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=Path)
    options.add_argument("--count", type=int, default=50_000)
    options.add_argument("--first", type=int, default=0, help="number of the first case")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    logs = sorted(chosen.folder.rglob("[0-9]*.log")) if chosen.folder else []
    seeds = [data for path in logs if (data := path.read_bytes())] if chosen.folder else seeds_made()
    if not seeds:
        sys.exit(f"{chosen.folder}: no segment with a batch in it")
    came: Counter[str] = Counter()
    wrong: list[str] = []
    slowest = 0.0
    with TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        path.write_bytes(seeds[0])
        outcome(Split(str(path), NAME, "", 0, len(seeds[0]), len(seeds[0])))  # what is imported late costs no case
        for number in range(chosen.first, chosen.first + chosen.count):
            dice = random.Random(f"{chosen.seed}/{number}")
            data = mutated(seeds, dice)
            data = bytes(signed(bytearray(data))) if data and dice.random() < 0.5 else data
            path.write_bytes(data)
            split = Split(str(path), NAME, "", 0, len(data), len(data))
            said, complaint, took = tried(split, number % MEASURED_EVERY == 0)
            slowest = max(slowest, took)
            came[said] += 1
            wrong += [f"case {chosen.seed}/{number}: {complaint}"] if complaint else []
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(came.items()))
    print(f"{chosen.count} files of {len(seeds)} seeds: {told}; the slowest {slowest:.3f} s; {len(wrong)} wrong")
    print(*wrong[:5], sep="\n", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""Mutated `_metadata` of Flink's: `fuzz_flink.py [--count N] [--seed S] [FOLDER]`; one line of what came of them.

FOLDER is searched for files named `_metadata`; without it, seeds are made by the writer of the tests: each version
with every handle. A mutation flips bits, cuts, repeats or swaps stretches, puts in a stretch of another seed, or writes
a large number where a length may be; one file has up to four. Every file must give rows or damage, without an error,
within a second, and in memory of 20 times its size and 4 MB. Exits with 1, naming the first cases, if one does not.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import tracemalloc
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.mutations import mutated
from cklog.engine.scan import Damage, Split
from cklog.inputs.snapshots import COLUMNS
from cklog.parsers.flink.metadata import READER, read
from tests.builders import flink as fb

SECONDS, BYTES_TIMES, BYTES_MORE = 1.0, 20, 4 << 20
MEASURED_EVERY = 10
"""Tracing allocations takes time, and would itself make files slow."""


def seeds_made() -> list[bytes]:
    """A file of each version, with every handle that there is."""
    split = fb.versioned(0, fb.kafka_split("orders", 3, 812))
    transaction = fb.versioned(2, fb.collector(7, [fb.committable("sink-0-7", 4001, 2)] * 3))
    data, places = fb.operator_state(
        {"SourceReaderState": [split] * 5, "streaming_committer_raw_states": [transaction]}
    )
    files = [
        fb.absolute("file:/mnt/a/shared/1", 9),
        fb.segment("file:/mnt/taskowned/2", 1, 2, 0),
        fb.relative("33-44", 5),
    ]
    keyed = [fb.key_groups(kind, fb.wrapped(fb.empty())) for kind in (3, 7, 12)]
    keyed += [fb.incremental(files[0], files * 5, files, second=second) for second in (False, True)]
    keyed += [fb.changes_inlined([b"one", b"two"]), fb.changes(files), fb.changes(files, second=False)]
    keyed += [fb.changelog(keyed[:3], keyed[5:7], second) for second in (False, True)]
    made = []
    for version in range(2, 8):
        typed = version >= 6
        channels = [[fb.channel(side if typed else None, 0, n, 7, files[2]) for n in range(3)] for side in (1, 2)]
        if typed:
            channels[0].append(fb.merged_channels(3, [(0, 1, 7), (0, 2, 9)], files[2]))
        managed = fb.states(fb.inline(data), places)
        subtasks = [
            fb.subtask(version, i, managed, fb.states(files[1], merged=True), one, None, channels[0], channels[1])
            for i, one in enumerate(keyed)
        ]
        enumerator = fb.coordinator(2, fb.i32(1) + fb.utf("orders") + fb.i32(3, 0) + b"\1")
        operators = [fb.operator(version, subtasks, parallelism=10, uid="a uid", coordinator=enumerator)]
        operators += [fb.operator(version, None if version > 2 else ())]
        made.append(fb.metadata(version, operators, [fb.master("hook", b"state")], properties=fb.properties()).data)
    return made


def outcome(split: Split) -> str:
    """What came of a file: rows, or the id of its damage; nothing is held."""
    rows, damage = 0, ""
    for found in read(split, "snapshots", (*COLUMNS, "_path", "_offset")):
        if isinstance(found, Damage):
            damage = found.id
            assert found.offset is None or 0 <= found.offset <= split.size
        else:
            rows += found.num_rows
    assert bool(rows) != bool(damage), "neither rows nor damage, or both"
    return damage or "rows"


def tried(split: Split, measure: bool) -> tuple[str, str]:
    """What came of a file, and what is wrong with that."""
    began = time.perf_counter()
    if measure:
        tracemalloc.start()
    try:
        came, wrong = outcome(split), ""
        took = time.perf_counter() - began
        peak = tracemalloc.get_traced_memory()[1] if measure else 0
        if took > SECONDS:
            wrong = f"{took:.2f} s"
        if peak > BYTES_TIMES * split.size + BYTES_MORE:
            wrong = f"{peak} bytes of memory for {split.size}"
        return came, wrong
    except Exception:
        return "error", traceback.format_exc()
    finally:
        tracemalloc.stop()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=Path)
    options.add_argument("--count", type=int, default=50_000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    found = sorted(path for path in chosen.folder.rglob("_metadata") if path.is_file()) if chosen.folder else []
    seeds = [path.read_bytes() for path in found] if chosen.folder else seeds_made()
    if not seeds:
        sys.exit(f"{chosen.folder}: no _metadata in it")
    came: Counter[str] = Counter()
    wrong: list[str] = []
    slowest = 0.0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "_metadata"
        for number in range(-1, chosen.count):  # -1: a good file, since the first one pays for imports
            data = mutated(seeds, random.Random(f"{chosen.seed}/{number}")) if number >= 0 else seeds[0]
            path.write_bytes(data)
            began = time.perf_counter()
            split = Split(str(path), "_metadata", READER, 0, len(data), len(data))
            said, complaint = tried(split, number % MEASURED_EVERY == 0)
            if number < 0:
                continue
            slowest = max(slowest, time.perf_counter() - began)
            came[said] += 1
            wrong += [f"case {chosen.seed}/{number}: {complaint}"] if complaint else []
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(came.items()))
    print(f"{chosen.count} files of {len(seeds)} seeds: {told}; the slowest {slowest:.3f} s; {len(wrong)} wrong")
    print(*wrong[:5], sep="\n", end="")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

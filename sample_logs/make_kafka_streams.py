"""Make sample_logs/kafka-streams-state: an instance of Kafka Streams that was killed, and the changelogs of its stores.

    pip install kafka-python
    python sample_logs/make_kafka_streams.py

The folders and checkpoint files are laid out as Kafka Streams 3.x does; of the stores there is one small file each, for
cklog does not read RocksDB. The changelogs are written by kafka-python's encoder. Every run makes the same bytes.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

from make_kafka import START_MS, encoded

HERE = Path(__file__).resolve().parent / "kafka-streams-state"
APP = "wordcount"
BATCH = 10

TASKS: dict[str, tuple[tuple[str, ...], dict[str, int] | None]] = {
    # task: its stores, and its entries (None: no file)
    "0_0": (("seen",), {f"{APP}-seen-changelog 0": 119}),
    "1_0": (("counts", "last"), {f"{APP}-counts-changelog 0": 249, f"{APP}-last-changelog 0": -4}),
    "1_1": (("counts", "last"), {f"{APP}-counts-changelog 1": 309, f"{APP}-last-changelog 1": 86}),
    "1_2": (("counts", "last"), None),
    "global": (("stopwords",), {"stopwords 0": 40}),
}
LOGS = {
    # partition: where it begins and where it ends
    f"{APP}-seen-changelog-0": (150, 400),
    f"{APP}-counts-changelog-0": (0, 262),
    f"{APP}-counts-changelog-1": (0, 300),
    f"{APP}-counts-changelog-2": (20, 280),
    f"{APP}-last-changelog-0": (0, 75),
    f"{APP}-last-changelog-1": (0, 90),
    f"{APP}-last-changelog-2": (0, 64),
    "stopwords-0": (0, 42),
}


def main() -> None:
    """Write both folders anew."""
    for name in ("state", "kafka"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    app = HERE / "state" / APP
    for task, (stores, entries) in TASKS.items():
        for store in stores:
            (app / task / "rocksdb" / store).mkdir(parents=True)
            (app / task / "rocksdb" / store / "CURRENT").write_text("MANIFEST-000005\n")
        if entries is not None:
            lines = ["0", str(len(entries)), *(f"{name} {offset}" for name, offset in entries.items())]
            (app / task / ".checkpoint").write_text("".join(f"{line}\n" for line in lines))
    (app / "kafka-streams-process-metadata").write_text('{"processId":"0c7b3c0e-6f0d-4d53-9a55-2f6f0a6f0d11"}')
    for name, (start, end) in LOGS.items():
        folder = HERE / "kafka" / name
        folder.mkdir(parents=True)
        (folder / f"{start:020}.log").write_bytes(b"".join(batch(base, end) for base in range(start, end, BATCH)))


def batch(base: int, end: int) -> bytes:
    """Updates of counts, from offset `base` on."""
    records = [(b"word-%d" % (n % 17), b"%d" % n) for n in range(base, min(base + BATCH, end))]
    made = encoded(records, START_MS + 100 * base, -1, 0)
    struct.pack_into(">q", made, 0, base)
    return bytes(made)


if __name__ == "__main__":
    main()

"""Make the samples of output queues: `python sample_logs/make_cec.py`. The same bytes every time.

cec-aggregate            an aggregate's queue and its upstream's, as JSON lines (by `cklog simulate cec`)
cec-aggregate-parquet    the same queue of the aggregate as Parquet
cec-aggregate-kafka      the same as a Kafka topic-partition folder, its batches by kafka-python (pip install it first)
cec-crashed              the same run, killed earlier: the last record is torn, and two in the middle are unreadable
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

from kafka.record.default_records import DefaultRecordBatchBuilder

from cklog.policies.check_records import Targets
from cklog.simulate.cec.tuples import Workload
from cklog.simulate.cec.write import write

HERE = Path(__file__).parent
WORKLOAD = Workload(keys=40, rate=1000.0, tuples=2500, start_ms=1_767_225_600_000)
POLICY = Targets(q_windows=4, interval_ms=1, cost_us=200)
RECORDS_A_BATCH = 50


def kafka_partition(lines: list[bytes], folder: Path) -> None:
    """Two segments, with the indexes that a broker writes when it rolls a segment."""
    folder.mkdir(parents=True)
    half = len(lines) // 2 // RECORDS_A_BATCH * RECORDS_A_BATCH
    for base, part in ((0, lines[:half]), (half, lines[half:])):
        log, index, times, latest = b"", b"", b"", 0
        for at in range(0, len(part), RECORDS_A_BATCH):
            chunk = part[at : at + RECORDS_A_BATCH]
            index += struct.pack(">ii", at + len(chunk) - 1, len(log)) if at else b""
            latest = max(latest, *(json.loads(value)["ts"] for value in chunk))
            times += struct.pack(">qi", latest, at + len(chunk) - 1)
            log += batch(base + at, chunk)
        name = folder / f"{base:020d}"
        name.with_suffix(".log").write_bytes(log)
        name.with_suffix(".index").write_bytes(index)
        name.with_suffix(".timeindex").write_bytes(times)


def batch(base: int, values: list[bytes]) -> bytes:
    """One record batch; its base offset is no part of the checksum, so it is put in afterwards, as a broker does."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    for i, value in enumerate(values):
        builder.append(i, json.loads(value)["ts"], None, value, [])
    return struct.pack(">q", base) + bytes(builder.build())[8:]


def main() -> None:
    for name in ("cec-aggregate", "cec-aggregate-parquet", "cec-aggregate-kafka", "cec-crashed"):
        place = HERE / name
        for old in (place / "outputs", place / "job.json"):
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
    plain = HERE / "cec-aggregate"
    made(plain, WORKLOAD, "jsonl", checksums=True)
    made(HERE / "cec-aggregate-parquet", WORKLOAD, "parquet")
    kafka = HERE / "cec-aggregate-kafka"
    made(kafka, WORKLOAD, "jsonl", checksums=True)
    lines = (plain / "outputs/agg1/part-00000.jsonl").read_bytes().splitlines()
    shutil.rmtree(kafka / "outputs/agg1")
    kafka_partition(lines, kafka / "outputs/agg1/agg1-out-0")
    for other in (HERE / "cec-aggregate-parquet", kafka):
        shutil.rmtree(other / "outputs/filter1")
        shutil.copytree(plain / "outputs/filter1", other / "outputs/filter1")
    crashed = HERE / "cec-crashed"
    made(crashed, WORKLOAD, "jsonl", crash_at=2200)
    spoil(crashed / "outputs/agg1/part-00000.jsonl")


def made(place: Path, workload: Workload, encoding: str, checksums: bool = False, crash_at: int | None = None) -> None:
    readme = (place / "README.md").read_bytes() if (place / "README.md").exists() else b""
    expected = {path: path.read_bytes() for path in place.glob("expected*")}
    shutil.rmtree(place, ignore_errors=True)
    write(place, workload, POLICY, encoding=encoding, checksums=checksums, upstream=True, crash_at=crash_at)  # type: ignore[arg-type]
    for path, content in {place / "README.md": readme, **expected}.items():
        if content:
            path.write_bytes(content)


def spoil(path: Path) -> None:
    """Overwrite two lines inside the extent, as a bad sector would."""
    lines = path.read_bytes().splitlines(keepends=True)
    for i in (len(lines) - 60, len(lines) - 59):
        lines[i] = b"\x00" * (len(lines[i]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))


if __name__ == "__main__":
    main()

"""Spark: files that a restart reads, the logs of sources and sinks, state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.builders.spark_state import HDFS, by_ids, checkpoint, hdfs, operator
from tests.conftest import SAMPLES
from tests.integration.produced.cases import Asked, cut, produces, sample

HOME = "file:///srv/cklog-sample/wordcount"


def wordcount(
    folder: Path, *more: str, gone: tuple[str, ...] = (), written: Mapping[str, bytes] | None = None
) -> Asked:
    """Ask about the sample without some files, and with some others in place of its own."""
    run = sample("spark-wordcount", folder)
    for path in (*gone, *(written or {})):
        at = run / path
        at.unlink(missing_ok=True)
        (at.parent / f".{at.name}.crc").unlink(missing_ok=True)
    for path, data in (written or {}).items():
        (run / path).write_bytes(data)
    return "recovery-line", run, "--map", f"{HOME}={run}", *more


def stored(folder: Path, files: Mapping[str, bytes]) -> Path:
    """A folder of these files."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


@produces("missing-batch-file", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, gone=("ck/offsets/5",))


@produces("torn-batch-file", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, written={"ck/offsets/6": b"v1\n{"})


@produces("empty-batch-file", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, written={"ck/commits/5": b""})


@produces("unknown-version", exit=5)
def _(folder: Path) -> Asked:
    return wordcount(folder, written={"ck/commits/5": b"v9\n{}"})


@produces("unreadable-checksum", exit=0)
def _(folder: Path) -> Asked:
    asked = wordcount(folder)
    (folder / "spark-wordcount" / "ck" / "offsets" / ".6.crc").write_bytes(b"???")
    return asked


@produces("batch-gap", exit=0)
def _(folder: Path) -> Asked:
    return wordcount(folder, gone=("ck/offsets/2",))


def stateless(folder: Path, batches: list[int], end: str, more: Mapping[str, bytes]) -> Path:
    """A query without state that has done these batches."""
    head = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}\n'
    files = {"metadata": b'{"id":"q"}', **more}
    files |= {f"offsets/{n}": head + end.replace("N", str(n)).encode() for n in batches}
    return stored(folder, files | {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in batches})


@produces("async-progress", exit=0)
def _(folder: Path) -> Asked:
    beginning = {"sources/0/0": b'\0v1\n{"t":{"0":0}}'}
    return "recovery-line", stateless(folder, [0, 2, 5, 9], '{"t":{"0":N}}', beginning)


@produces("unjudged-source", exit=5)
def _(folder: Path) -> Asked:
    kept = {f"sources/0/positions/{n}": b"7" for n in (0, 1)}
    return "recovery-line", stateless(folder, [0, 1, 2], '{"cursor":N}', kept)


@produces("source-table-cleaned", exit=3)
def _(folder: Path) -> Asked:
    end = '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":N,"index":-1,"isStartingVersion":false}'
    run = stateless(folder / "ck", [0, 1, 2], end, {})
    name = f"{9:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    log = {name: b'{"metaData":{"id":"t","configuration":{}}}'}
    log |= {f"{n:020}.json": b'{"commitInfo":{"timestamp":5,"operation":"WRITE"}}' for n in (9, 10)}
    table = stored(folder / "src", {f"_delta_log/{path}": data for path, data in log.items()})
    return "recovery-line", run, "--sink", str(table)


@produces("missing-metadata", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, gone=("ck/metadata",))


@produces("commit-ahead-of-offsets", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, gone=("ck/offsets/6", "ck/offsets/5"))


@produces("unfinished-repartition", exit=3)
def _(folder: Path) -> Asked:
    files = hdfs().files
    plan = files["offsets/6"].replace(b'partitions": "2"', b'partitions": "3"')
    return "recovery-line", stored(folder, {**files, "offsets/7": plan})


@produces("missing-source-log", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, gone=("ck/sources/0/6",))


@produces("missing-input-file", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, gone=("in/minute-6.json",))


@produces("empty-input-file", exit=0)
def _(folder: Path) -> Asked:
    return wordcount(folder, written={"in/minute-6.json": b""})


@produces("unchecked-input", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", sample("spark-wordcount", folder)


@produces("sink-log-behind", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, gone=("out/_spark_metadata/5",))


@produces("sink-log-ahead", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, written={"out/_spark_metadata/6": b"v1"})


@produces("missing-result-file", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, gone=("out/part-00000-67f5eb1c-0baa-4604-b1b8-82f7b080c748-c000.json",))


@produces("unchecked-results", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", sample("spark-chain/clean", folder)


@produces("unchecked-sink", exit=0)
def _(folder: Path) -> Asked:
    files = dict(by_ids().files)
    files["offsets/4"] = files["offsets/3"].replace(b'"batchTimestampMs": 5', b'"batchTimestampMs": 6')
    return "recovery-line", stored(folder, files)


@produces("offset-went-back", exit=3)
def _(folder: Path) -> Asked:
    head = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}\n'
    files = {"metadata": b'{"id":"q"}', "sources/0/0": b'\0v1\n{"clicks":{"0":7}}', "commits/0": b"v1\n{}"}
    ends = {"offsets/0": head + b'{"clicks":{"0":33}}', "offsets/1": head + b'{"clicks":{"0":3}}'}
    return "recovery-line", stored(folder, files | ends)


@produces("repeated-plan", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, written={"ck/offsets/6": (SAMPLES / "spark-wordcount/ck/offsets/5").read_bytes()})


@produces("unreachable-batch", exit=4)
def _(folder: Path) -> Asked:
    return wordcount(folder, "--at", "query/0=6")


@produces("unknown-time", exit=3)
def _(folder: Path) -> Asked:
    return wordcount(folder, "--as-of", "2030-01-01", written={"ck/offsets/6": b"v1\n{"})


@produces("missing-state-file", exit=3)
def _(folder: Path) -> Asked:
    files = dict(hdfs().files)
    del files["state/0/1/7.delta"]
    return "recovery-line", stored(folder, files)


@produces("corrupt-file", exit=3)
def _(folder: Path) -> Asked:
    stored(folder, hdfs().files)
    cut(folder / "state" / "0" / "1" / "7.delta")
    return "recovery-line", folder


@produces("contents-not-checked", exit=0)
def _(folder: Path) -> Asked:
    run = sample("spark-state-rocksdb", folder)
    for side in run.rglob("*.crc"):
        side.unlink()
    return "recovery-line", run


@produces("unjudged-state", exit=5)
def _(folder: Path) -> Asked:
    files = checkpoint("com.example.OwnProvider", 7) | operator() | {"state/0/0/7.own": b"state"}
    return "recovery-line", stored(folder, files)


@produces("unjudged-state", exit=0)
def _(folder: Path) -> Asked:
    files = dict(hdfs().files) | checkpoint(HDFS, 7, codec="lzf")
    return "recovery-line", stored(
        folder, {p: b"ZV..." if p.endswith(("delta", "snapshot")) else d for p, d in files.items()}
    )


@produces("no-common-checkpoint", exit=4)
def _(folder: Path) -> Asked:
    files = {path: data for path, data in hdfs().files.items() if not path.endswith(".snapshot")}
    del files["state/0/1/1.delta"]
    return "chain", stored(folder, files)

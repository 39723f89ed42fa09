"""Tables over S3 are what the same tables are here, and of them only metadata is asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cklog.errors import NotFound
from cklog.inputs.sink_tables import SinkTable
from cklog.parsers.sink_tables.opening import read_table
from cklog.stores.places import numbered
from cklog.stores.store import store_of
from tests.builders.lakes.hudi_tables import HudiTable, sink
from tests.builders.lakes.sink_tables import append, delta_commit, flink, iceberg_table, place
from tests.conftest import SAMPLES
from tests.integration.stores.server import ObjectStore
from tests.program import cklog

PAIMON = Path(__file__).parents[2] / "unit" / "parsers" / "sink_tables" / "paimon" / "stream"


def made(kind: str, folder: Path) -> Path:
    """A table of a format."""
    if kind == "iceberg":
        pytest.importorskip("pyiceberg")
        table = iceberg_table(folder)
        append(table, flink("job", 1, "op"))
        return place(table)
    if kind == "delta":
        pytest.importorskip("deltalake")
        delta_commit(folder / "t", "query", 1)
        return folder / "t"
    if kind == "hudi":
        table = HudiTable(folder / "t", 8)
        table.commit("20260101000000000", sink(query=1))
        (folder / "t" / "f.parquet").write_bytes(b"rows")
        return folder / "t"
    return PAIMON


def bare(table: SinkTable, uri: str) -> SinkTable:
    """What is told of a table, but for where it lies."""
    findings = tuple(replace(f, subject="", where=(), message=f.message.replace(uri, "")) for f in table.findings)
    return replace(table, uri="", inputs=tuple(replace(used, path="") for used in table.inputs), findings=findings)


@pytest.mark.parametrize("kind", ["iceberg", "delta", "paimon", "hudi"])
def test_a_table_is_the_same_over_s3(store: ObjectStore, tmp_path: Path, kind: str) -> None:
    folder = made(kind, tmp_path)
    uri = store.upload(folder, f"tables/{kind}")
    reached = numbered(uri, store_of(store.options.items(), [uri]))
    there = read_table(reached)
    assert bare(there, uri) == bare(read_table(str(folder)), str(folder))
    assert there.uri == uri
    assert there.commits
    assert store.bytes_of(".parquet") == 0
    if kind == "iceberg":
        (name,) = [path.name for path in (folder / "metadata").glob("00001-*.json")]
        file = numbered(f"{uri}/metadata/{name}", store_of(store.options.items(), [uri]))
        assert read_table(file).remembers == there.remembers
    with pytest.raises(NotFound):
        read_table(numbered(f"{uri}-other", store_of(store.options.items(), [uri])))


def test_a_table_over_s3_is_reached_by_the_options_of_the_run(store: ObjectStore) -> None:
    """Whether the run lies there, too, or here."""
    sample = SAMPLES / "tables" / "flink-older-checkpoint"
    uri = store.upload(sample, "asked")
    asked = ("recovery-line", f"{sample}/checkpoints", "--sink")
    here = cklog(*asked, f"orders={sample}/table", "--json").out
    for there in (
        cklog(*asked, f"orders={uri}/table", *store.words, "--json").out,
        cklog("recovery-line", f"{uri}/checkpoints", *asked[2:], f"orders={uri}/table", *store.words, "--json").out,
    ):
        told, known = (json.loads(text.replace(uri, str(sample)))["result"]["details"] for text in (there, here))
        assert (told["sinks"], told["sink_line"]) == (known["sinks"], known["sink_line"])
        assert told["sink_line"]["agrees"] is False

"""What lies at a URI, and what of it nobody may read."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cklog import storage
from cklog.errors import CklogError, NotFound, Unreadable, UsageError
from cklog.parsers.sink_tables.opening import read_table
from tests.builders.lakes.hudi_tables import HudiTable, sink
from tests.builders.lakes.sink_tables import append, delta_commit, flink, iceberg_table, place

PAIMON = Path(__file__).parent / "paimon" / "stream"


def iceberg(folder: Path) -> Path:
    pytest.importorskip("pyiceberg")
    table = iceberg_table(folder)
    append(table, flink("job", 1, "op"))
    return place(table)


def delta(folder: Path) -> Path:
    pytest.importorskip("deltalake")
    delta_commit(folder / "t", "query", 1)
    return folder / "t"


def paimon(folder: Path) -> Path:
    return Path(shutil.copytree(PAIMON, folder / "t"))


def hudi(folder: Path) -> Path:
    table = HudiTable(folder / "t", 6)
    table.commit("20260101000000000", sink(query=1))
    return folder / "t"


FORMATS: dict[str, Callable[[Path], Path]] = {"iceberg": iceberg, "delta": delta, "paimon": paimon, "hudi": hudi}


@pytest.mark.parametrize("name", FORMATS)
def test_what_lies_there(tmp_path: Path, name: str) -> None:
    """A table is recognised, said to be of a format, and found again where it was moved: no path in it is followed."""
    folder = FORMATS[name](tmp_path / "a")
    found = read_table(str(folder))
    assert found.format == name
    assert read_table(str(folder), format=name.upper()) == found
    assert read_table(f"file://{folder}").remembers == found.remembers
    moved = shutil.move(str(folder), str(tmp_path / "moved"))
    again = read_table(str(moved))
    assert (again.commits, again.remembers, again.head) == (found.commits, found.remembers, found.head)


@pytest.mark.parametrize("name", FORMATS)
def test_what_may_not_be_read(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of metadata that the system refuses is no damage, and nothing is said of the table."""
    folder = FORMATS[name](tmp_path)
    path = str(folder)
    read_table(path)
    opened = storage.open_file

    def refused(uri: str, listed: int | None = None) -> Any:
        if uri.endswith((".json", "snapshot-5", ".commit")):
            raise PermissionError(errno.EACCES, "Permission denied", uri)
        return opened(uri, listed)

    monkeypatch.setattr(storage, "open_file", refused)
    with pytest.raises(Unreadable, match="permission denied"):
        read_table(path)


def test_what_is_no_table(tmp_path: Path) -> None:
    """Formats that there are not, places where nothing is, folders that are something else, names without a catalog."""
    with pytest.raises(UsageError, match="no format of tables: 'orc'"):
        read_table(str(tmp_path), format="orc")
    with pytest.raises(NotFound, match="no such table"):
        read_table(str(tmp_path / "none"))
    with pytest.raises(NotFound, match="no table that cklog knows"):
        read_table(str(tmp_path))
    with pytest.raises(UsageError, match="catalogs are asked for tables of Iceberg"):
        read_table("catalog:prod.d.t", format="delta")
    (tmp_path / "file").touch()
    for name in FORMATS:
        with pytest.raises((NotFound, UsageError)):
            read_table(str(tmp_path / "file"), format=name)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", FORMATS)
def test_damage_anywhere(tmp_path: Path, name: str, seed: int) -> None:
    """Bytes that are cut off, changed or doubled end in a table, or in an error that says so in a line."""
    chance = random.Random(seed)
    folder = FORMATS[name](tmp_path)
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".parquet", ".avro"))
    for path in chance.sample(paths, min(2, len(paths))):
        data = bytearray(path.read_bytes())
        for _ in range(chance.choice([1, 1, 8])):
            at = chance.randrange(len(data) + 1)
            kind = chance.randrange(4)
            if kind == 0:
                del data[at:]
            elif kind == 1 and at < len(data):
                data[at] = chance.randrange(256)
            elif kind == 2:
                data[at:at] = chance.choice([b"[" * 9000, b"9" * 9000, b"\0", b"null", b'"', b"{}"])
            else:
                del data[at : at + chance.randrange(9)]
        path.write_bytes(data)
    refused: CklogError | None = None
    try:
        assert read_table(str(folder), format=name).format == name
    except CklogError as error:
        refused = error
    assert refused is None or refused.exit_code in (2, 5, 65, 66)


@pytest.mark.parametrize(("name", "file"), [("paimon", "snapshot/snapshot-9"), ("delta", f"_delta_log/{9:020}.json")])
def test_a_sparse_file_of_a_terabyte_is_damage_and_makes_the_table_indeterminate(
    tmp_path: Path, name: str, file: str
) -> None:
    folder = FORMATS[name](tmp_path)
    with (folder / file).open("wb") as made:
        made.truncate(1 << 40)
    found = read_table(str(folder))
    assert found.indeterminate
    assert "corrupt-file" in {finding.id for finding in found.findings if file in finding.message}

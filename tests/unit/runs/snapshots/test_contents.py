"""State files of the right size that are not what was written, in a real sample: what every command says of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from cklog.inputs.snapshots import ContentCheck, FilePlace, StateFile
from cklog.model.question import KafkaLogs, Question
from cklog.parsers.flink.parser import Flink
from cklog.run import open_run
from cklog.runs.snapshots.contents import ExaminedState
from cklog.storage import Root
from tests.conftest import SAMPLES
from tests.program import cklog

SST_END = bytes.fromhex("f7cff485b741e288")
JOB = "125c88b9401f9252baa1b39e412cc4b8"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    root = tmp_path / "flink-orders"
    shutil.copytree(SAMPLES / "flink-orders", root)
    return root


def asked(root: Path, command: str = "recovery-line", *more: str | Path) -> tuple[int, dict[str, Any]]:
    ended = cklog(command, root, "--json", *more)
    return ended.code, json.loads(ended.out)


def line(answer: dict[str, Any]) -> int | None:
    """The checkpoint from which the second job goes on."""
    found: int | None = answer["result"]["line"][-1]["checkpoint"]
    return found


def ids(answer: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in answer["findings"]}


def named_by(root: Path, file: Path) -> list[int]:
    """The checkpoints of both jobs whose metadata has the name of a file in it, by the bytes alone."""
    found = [path for path in root.glob("*/chk-*/_metadata") if file.name.encode() in path.read_bytes()]
    return sorted(int(path.parent.name.removeprefix("chk-")) for path in found)


def state_files(root: Path) -> list[Path]:
    found: list[StateFile] = Flink(Root(str(root))).state_files()
    return [root / file.path for file in found if not file.path.endswith("_metadata") and file.bytes]


def zero(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def test_what_was_not_looked_at_is_said_once(orders: Path) -> None:
    code, answer = asked(orders)
    assert (code, line(answer)) == (0, 13)
    (said,) = [f for f in answer["findings"] if f["id"] == "contents-not-checked"]
    assert "--check-contents checks every block" in said["message"]
    assert said["severity"] == "info"
    _, answer = asked(orders, "recovery-line", "--check-contents")
    (said,) = [f for f in answer["findings"] if f["id"] == "contents-not-checked"]
    assert "every block of 8 tables was checked" in said["message"]
    assert "Flink writes no checksums" in said["message"]


def test_pieces_that_were_not_checked_are_counted_by_reason() -> None:
    """By hand: four pieces, two of them not checked for one reason, one for another."""
    why = {"a": "no checksums", "b": "a codec", "c": "no checksums", "d": ""}
    parser: Any = SimpleNamespace(
        contents=lambda pieces, thorough: [ContentCheck(unproved=why[p.path]) for p in pieces]
    )
    held = [{"entry": "handle", "file": name, "start": 0, "bytes": 1, "form": "changes", "offsets": []} for name in why]
    state = ExaminedState(parser, thorough=True)
    assert state.damaged(pa.Table.from_pylist(held), [*why], [FilePlace(name, 1) for name in why]) == []
    (said,) = [finding.message for finding in state.findings()]
    assert "2 pieces of state were not checked further: no checksums." in said
    assert "1 piece of state was not checked further: a codec." in said


def test_a_zeroed_file_costs_just_the_checkpoints_that_name_it(orders: Path) -> None:
    """Each file in turn: the line is the newest checkpoint that does not name it, and options cost nothing."""
    whole = {13, 12, 11}
    tried = {"options": 0, "other": 0}
    for file in state_files(orders):
        names = set(named_by(orders, file))
        if not names & whole:
            continue
        data = file.read_bytes()
        zero(file)
        code, answer = asked(orders)
        assert "corrupt-file" in ids(answer)
        if data.startswith(b"# This is a RocksDB option file"):
            tried["options"] += 1
            assert (code, line(answer)) == (0, 13), file
        else:
            tried["other"] += 1
            left = whole - names
            assert line(answer) == max(left, default=None), file
            assert code == (3 if 13 in names else 0) if left else 4, file
        file.write_bytes(data)
    assert min(tried.values()) > 2


def test_a_flipped_bit_in_data_is_found_where_every_block_is_checked(orders: Path) -> None:
    tables = [
        file for file in state_files(orders) if file.read_bytes().endswith(SST_END) and 13 in named_by(orders, file)
    ]
    assert tables
    for file in tables:
        data = file.read_bytes()
        file.write_bytes(data[:30] + bytes([data[30] ^ 4]) + data[31:])
        assert line(asked(orders)[1]) == 13
        code, answer = asked(orders, "recovery-line", "--check-contents")
        assert (code, line(answer)) == (3, max({11, 12} - set(named_by(orders, file)), default=None) or 0) or code == 4
        (finding,) = [f for f in answer["findings"] if f["id"] == "corrupt-file" and f["subject"].endswith("chk-13")]
        assert finding["where"] == [{"path": str(file.relative_to(orders)), "offset": 0}]
        file.write_bytes(data)


def test_every_command_says_it(orders: Path, tmp_path: Path) -> None:
    own = next((orders / JOB / "chk-13").glob("[0-9]*"))
    zero(own)
    for command in ("recovery-line", "replay", "inspect", "retention", "impact", "chain"):
        _, answer = asked(orders, command)
        assert "corrupt-file" in ids(answer), command
    given = tmp_path / "line.json"
    given.write_text(json.dumps({f"{JOB}/0": 13}))
    code, answer = asked(orders, "verify", "--line", given)
    assert code == 3
    assert {"corrupt-file", "not-restorable"} <= ids(answer)
    given.write_text(json.dumps({f"{JOB}/0": 12}))
    code, answer = asked(orders, "verify", "--line", given, "--maximal")
    assert code == 0
    assert ids(answer) == {"contents-not-checked"}
    assert cklog("recovery-line", orders, "--strict").code == 65


def test_nothing_of_a_damaged_checkpoint_may_go(orders: Path) -> None:
    """Another copy of the one file would mend it."""
    own = next((orders / JOB / "chk-13").glob("[0-9]*"))
    before = {row["path"]: row["fate"] for row in asked(orders, "retention", "--jobs-stopped")[1]["result"]["rows"]}
    zero(own)
    after = {row["path"]: row["fate"] for row in asked(orders, "retention", "--jobs-stopped")[1]["result"]["rows"]}
    assert {path for path, fate in after.items() if fate == "OBSOLETE"} <= {
        path for path, fate in before.items() if fate == "OBSOLETE"
    }
    assert after[str(own.relative_to(orders))] == "KEEP"


def test_a_file_that_goes_while_it_is_looked_at_is_not_damage(orders: Path) -> None:
    """It was listed with its size, and cannot be opened: nobody knows what it held."""
    with open_run(str(orders)) as run:
        assert isinstance(run.parser, Flink)  # everything is listed now
        next((orders / JOB / "chk-13").glob("[0-9]*")).unlink()
        answer = run.recovery_line(Question(), KafkaLogs())
    assert answer.exit_code == 5
    (finding,) = [f for f in answer.findings if f.id == "unreadable-file"]
    assert "cannot be read" in finding.message
    assert "corrupt-file" not in {f.id for f in answer.findings}


def test_without_looking_at_files_nothing_is_opened(orders: Path) -> None:
    zero(next((orders / JOB / "chk-13").glob("[0-9]*")))
    code, answer = asked(orders, "recovery-line", "--no-check-files")
    assert (code, line(answer)) == (0, 13)
    assert "files-not-checked" in ids(answer)
    assert cklog("recovery-line", orders, "--no-check-files", "--check-contents").code == 2

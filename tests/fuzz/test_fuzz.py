"""Two thousand cases of the harness, and the harness itself: what it damages it mends, what is wrong it sees."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.fuzz import campaign, kept
from tests.fuzz.excuses import FREE, STRICT, levels
from tests.fuzz.mutations import ALL, damage
from tests.fuzz.mutations.change import Change
from tests.fuzz.oracle import Told, violations
from tests.fuzz.subjects import SUBJECTS
from tests.fuzz.tree import Tree
from tests.program import Ended

BY_NAME = {subject.name: subject for subject in SUBJECTS}
CHUNK = 200
VERDICTS = {0: "ok", 3: "findings", 4: "unrecoverable", 5: "indeterminate"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(CHUNK, 2000, CHUNK))])
def test_no_damage_makes_an_answer_newer_shorter_quieter_or_fail(seed: int) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--count", str(CHUNK), "--seed", str(seed)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]


def answer(code: int = 0, findings: tuple[str, ...] = (), **result: Any) -> Told:
    common = {"severity": "error", "subject": "x", "where": [], "effect": "older-line"}
    found = [{"id": id, "message": id, **common} for id in findings]
    said = {"schema": "cklog.inspect/1", "verdict": VERDICTS[code], "findings": found, "result": result}
    return Told(Ended(code, json.dumps(said), ""), True)


def entry(number: int | None, **more: Any) -> dict[str, Any]:
    return {"operator": "a", "subtask": 0, "checkpoint": number, "state": "stored", **more}


def row(path: str, fate: str) -> dict[str, Any]:
    return {"path": path, "fate": fate}


LINE = answer(line=[entry(5)])
PLAN = answer(rows=[row("a", "VALID"), row("b", "OBSOLETE")])
RANGE = answer(line=[entry(5)], channels=[{"channel": "c", "replay_from": 3, "replay_to": 9}])

WRONG = {
    "exit-70": (LINE, Told(Ended(70, "", "cklog: a bug"), True)),
    "traceback": (LINE, Told(Ended(65, "", "Traceback (most recent call last):"), True)),
    "refused-with-output": (LINE, Told(Ended(65, "{", "cklog: no"), True)),
    "refused-without-a-word": (LINE, Told(Ended(65, "", ""), True)),
    "no-json": (LINE, Told(Ended(0, "{", ""), True)),
    "contradiction": (LINE, answer(0, ("damage",), line=[entry(5)])),
    "sentinel": (RANGE, answer(3, ("d",), line=[entry(4)], channels=[{"channel": "c", "messages": 2**63 - 1}])),
    "newer": (LINE, answer(3, ("damage",), line=[entry(6)])),
    "later": (RANGE, answer(3, ("d",), line=[entry(4)], channels=[{"channel": "c", "replay_from": 4, "replay_to": 9}])),
    "shorter": (RANGE, answer(line=[entry(5)], channels=[{"channel": "c", "replay_from": 3, "replay_to": 8}])),
    "deletable": (PLAN, answer(3, ("damage",), rows=[row("a", "OBSOLETE"), row("b", "OBSOLETE")])),
    "silent": (LINE, answer(line=[entry(4)])),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_may_not_happen_is_seen(name: str) -> None:
    base, found = WRONG[name]
    assert name in {wrong.partition(":")[0] for wrong in violations(base, found, STRICT)}


def test_what_is_right_is_not_taken_for_wrong() -> None:
    older = answer(3, ("damage",), line=[entry(4)])
    assert violations(LINE, LINE, STRICT) == []
    assert violations(LINE, older, STRICT) == []
    assert violations(LINE, Told(Ended(65, "", "cklog: no record can be read"), True), STRICT) == []
    assert violations(LINE, answer(line=[entry(6)]), FREE) == []


@pytest.fixture
def tree(tmp_path: Path, request: pytest.FixtureRequest) -> Tree:
    subject = BY_NAME[request.param]
    return Tree(tmp_path / "run", subject.files())


def found_below(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("tree", ["uncoordinated-join", "spark-wordcount", "crafted/join-parquet"], indirect=True)
def test_whatever_is_damaged_is_mended(tree: Tree) -> None:
    kinds = set()
    for seed in range(150):
        kinds.add(damage(tree, random.Random(seed)).kind)
        damage(tree, random.Random(seed + 1000))
        tree.mend()
        assert found_below(tree.root) == tree.files, seed
        assert [path for path in tree.root.rglob("*") if path.is_symlink()] == []
    assert len(kinds) > 12


def test_every_mutation_is_tried() -> None:
    """On some subject each mutation finds something to damage."""
    left = dict(ALL)
    for name in ("uncoordinated-join", "crafted/join-gz", "crafted/join-parquet", "kafka-broker"):
        files = BY_NAME[name].files()
        for kind, (mutation, _) in list(left.items()):
            if any(mutation(_Remembering(files), random.Random(seed)) for seed in range(20)):
                del left[kind]
    assert set(left) <= {"file.shut"}, "only what nobody may try here"


class _Remembering(Tree):
    """A tree without a disk."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.root = self.elsewhere = Path("/dev/null")
        self.files, self.names, self.touched = files, sorted(files), set()

    def put(self, name: str, data: bytes) -> None:
        assert isinstance(data, bytes)

    def drop(self, name: str) -> None: ...

    def fold(self, name: str) -> None: ...

    def link(self, name: str, target: str | Path) -> None: ...


JOIN = "checkpoints/join.jsonl"
LEVELS = {
    "a flipped letter in a line with a checksum": (b'"time"', b'"tIme"', "strict", "strict"),
    "a line that is none": (b'{"operator"', b'x"operator"', "strict", "strict"),
}


@pytest.mark.parametrize("tree", ["uncoordinated-join"], indirect=True)
@pytest.mark.parametrize("what", LEVELS)
def test_damage_to_what_has_checksums_excuses_nothing(tree: Tree, what: str) -> None:
    old, new, newer, silent = LEVELS[what]
    tree.put(JOIN, tree.files[JOIN].replace(old, new, 1))
    held = levels(tree, "native", (Change((JOIN,), what),))
    assert (held["newer"], held["silent"]) == (newer, silent)


@pytest.mark.parametrize("tree", ["patent-store", "uncoordinated-join"], indirect=True)
def test_contents_that_changed_places_are_forged_where_only_the_name_says_whose_they_are(tree: Tree) -> None:
    family = "patent" if "totals.jsonl" in tree.files else "native"
    one, two = (name for name in tree.names if name in ("totals.jsonl", "figure.jsonl", JOIN, "checkpoints/sink.jsonl"))
    tree.put(one, tree.files[two])
    tree.put(two, tree.files[one])
    held = levels(tree, family, (Change((one, two), "", kind="file.swapped"),))
    assert held["newer"] == ("free" if family == "patent" else "strict")


@pytest.mark.parametrize("tree", ["crafted/join-plain"], indirect=True)
def test_what_somebody_may_have_written_is_excused_and_damage_is_not(tree: Tree) -> None:
    def held(data: bytes) -> tuple[str, str]:
        tree.put(JOIN, data)
        found = levels(tree, "native", (Change((JOIN,), ""),))
        return found["newer"], found["silent"]

    whole = tree.files[JOIN]
    assert held(whole.replace(b'"checkpoint":1', b'"checkpoint":9', 1)) == ("free", "free")
    assert held(whole.replace(b'"checkpoint":1', b'"checkpoint":"', 1)) == ("strict", "strict")
    assert held(b"".join(whole.splitlines(keepends=True)[1:])) == ("strict", "free")
    assert held(whole[:-5]) == ("strict", "strict")


BROKEN = "orders-1/00000000000000000000.log"
WHOLE = "orders-1/00000000000000000040.log"


@pytest.mark.parametrize("tree", ["kafka-broker"], indirect=True)
def test_of_a_segment_only_what_no_checksum_covers_is_told(tree: Tree) -> None:
    """The sample's first segment has a batch with a wrong checksum, the one behind it none."""

    def held(name: str, data: bytes | None, unreadable: bool = False) -> tuple[str, str]:
        tree.mend()
        tree.drop(name) if data is None else tree.put(name, data)
        found = levels(tree, "kafka", (Change((name,), "", unreadable=unreadable),))
        return found["newer"], found["later"]

    whole, broken = tree.files[WHOLE], tree.files[BROKEN]
    later = whole[:5] + bytes([whole[5] ^ 8]) + whole[6:]
    assert held(WHOLE, later) == ("told", "told")
    assert held(WHOLE, later + b"torn") == ("told", "told")
    assert held(WHOLE, whole[:-40]) == ("strict", "strict")
    assert held(WHOLE, whole[:70] + b"x" + whole[71:]) == ("strict", "strict")
    assert held(WHOLE, None) == ("strict", "told")
    assert held(BROKEN, b"") == held(BROKEN, None) == held(BROKEN, broken, unreadable=True) == ("told", "told")
    assert held(WHOLE, whole, unreadable=True) == ("strict", "strict")
    assert held(BROKEN, broken[:-40]) == ("strict", "strict")


@pytest.mark.parametrize("tree", ["checkmate-uncoordinated"], indirect=True)
def test_a_snapshot_that_is_gone_is_excused_where_no_name_shows_it(tree: Tree) -> None:
    def held() -> tuple[str, str]:
        found = levels(tree, "checkmate", (Change((name,), "", kind="file.dropped"),))
        return found["newer"], found["deletable"]

    name, *others = sorted(name for name in tree.names if "snapshot_1_" in name and "_join_" not in name)
    stamp = name.rpartition("_")[2]
    tree.drop(name)
    assert any(other.endswith(stamp) for other in others)
    assert held() == ("strict", "strict")
    tree.names = [other for other in tree.names if other == name or not other.endswith(stamp)]
    assert held() == ("free", "free")
    tree.fold(name)
    assert held() == ("strict", "strict")


def test_a_long_campaign_goes_on_where_it_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(first: int, count: int, *_: object) -> campaign.Sums:
        sums = campaign.Sums()
        for case in range(first, first + count):
            said = {"case": case, "subject": "s", "question": "replay", "mutation": "m", "exit": 0, "cpu": case}
            sums.add(said | ({"wrong": ["newer: x"], "what": ["w"]} if case == 12_345 else {}))
        return sums

    def ended(first: int, count: int, *rest: object) -> campaign.Sums:
        if first >= 20_000:
            raise KeyboardInterrupt
        return tried(first, count)

    place = tmp_path / "kept.json"
    monkeypatch.setattr(kept, "_BLOCK", 10_000)
    monkeypatch.setattr(campaign, "run", ended)
    with pytest.raises(KeyboardInterrupt):
        kept.run(place, 0, 25_000, 1, False, "")
    monkeypatch.setattr(campaign, "run", tried)
    assert kept.run(place, 0, 25_000, 1, False, "") == tried(0, 25_000)
    with pytest.raises(SystemExit, match="of other cases"):
        kept.run(place, 1, 25_000, 1, False, "")

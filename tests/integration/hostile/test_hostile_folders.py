"""Damaged and hostile folders of Kafka, Kafka Streams and CheckMate: documented ends, nothing newer, nothing silent."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cklog.lines.exports import replay_formats
from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.conftest import SAMPLES
from tests.program import cklog

ANSWERED = {0, 3, 4, 5}
DOCUMENTED = ANSWERED | {2, 65, 66}
COMMANDS = ("recovery-line", "replay", "inspect")
SEGMENT_5 = f"t-0/{5:020}.log"
FORMS = ("table", "json", "jsonl", "csv", "md")

Answer = dict[str, Any]
Measured = dict[tuple[str, ...], int]


def told(answer: Answer) -> set[tuple[str, str]]:
    return {(f["id"], f["subject"]) for f in answer["findings"]}


# --- one sample at a time, damaged at random


def of_brokers(answer: Answer) -> Measured:
    """Where logs will end and groups go on; behind a log's new start anything goes: the log says so itself."""
    rows = answer["result"]["details"]
    found = {("log", r["partition"]): r["restart_end"] for r in rows["partitions"]}
    return found | {("group", r["group"], r["partition"]): r["resume"] for r in rows["groups"]}


def starts(answer: Answer) -> dict[str, int]:
    rows = answer["result"].get("details", {}).get("partitions", [])
    return {row["partition"]: row["log_start"] for row in rows}


def of_lines(answer: Answer) -> Measured:
    return {(e["operator"], str(e["subtask"])): e["checkpoint"] or 0 for e in answer["result"]["line"]}


def of_stores(answer: Answer) -> Measured:
    """The less a store restores the more it is believed."""
    rows = answer["result"]["details"]["stores"]
    return {(r["task"], r["store"] or "", r["changelog"]): -r["records"] for r in rows if r["records"] is not None}


@dataclass(frozen=True)
class Kind:
    """A sample, the folder in it that is PATH, its logs, what is measured, and damage that no reader can see."""

    sample: str
    path: str
    kafka: str
    measured: Callable[[Answer], Measured]
    unseen: frozenset[str] = frozenset()

    def ask(self, command: str, folder: Path, *more: str) -> list[str | Path]:
        logs: list[str | Path] = ["--kafka", folder / self.kafka] if self.kafka and command != "inspect" else []
        return [command, folder / self.path, *logs, *more]


KINDS = {
    "kafka": Kind("kafka-broker", "", "", of_brokers),
    "checkmate": Kind("checkmate-uncoordinated", "", "", of_lines, frozenset({"flip", "blow"})),
    "streams": Kind("kafka-streams-state", "state", "kafka", of_stores, frozenset({"flip", "blow"})),
}
"""CheckMate's pickles and the text files of Kafka Streams have no checksum: a digit may become another one."""

BLOWN = (b"\x7f\xff\xff\xff", b"\xff" * 4, b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7, b"\0" * 4)


def injured(kind: Kind, folder: Path, rng: random.Random) -> str:
    """Damage one thing below `folder`; what was done."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in ("README.md", "expected.json"))
    path = rng.choice([p for p in files if p.stat().st_size])
    data = path.read_bytes()
    at = rng.randrange(len(data))
    how = rng.choice(["cut", "flip", "blow", "zeros", "twice", "empty", "dropped", "folder", "swapped", "renamed"])
    word = rng.choice(BLOWN)
    at = rng.choice([at, min(8, len(data) - 1)]) if how == "blow" else at
    made = {
        "cut": data[:at],
        "flip": data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
        "blow": data[:at] + word + data[at + len(word) :],
        "zeros": data[:at] + bytes(len(data) - at),
        "twice": data * 2,
        "empty": b"",
    }
    if how in made:
        path.write_bytes(made[how])
    elif how == "swapped":
        other = rng.choice(files)
        mixed = other.read_bytes()
        other.write_bytes(data)
        path.write_bytes(mixed)
    elif how == "renamed":
        target = rng.choice([path, path.parent if path.parent != folder else path])
        name = rng.choice(["x", "0_7", "orders-9", "a,b-0", f"{5:020}.log", "=1", f"{target.name}.deleted"])
        if not target.with_name(name).exists():
            target.rename(target.with_name(name))
    else:
        path.unlink()
        if how == "folder":
            path.mkdir()
    return how


def injure(name: str, seeds: range, tmp_path: Path) -> None:
    kind = KINDS[name]
    whole = json.loads(cklog(*kind.ask("recovery-line", SAMPLES / kind.sample, "--json")).out)
    for seed in seeds:
        folder = tmp_path / str(seed)
        shutil.copytree(SAMPLES / kind.sample, folder)
        how = injured(kind, folder, random.Random(seed))
        for command in COMMANDS:
            ended = cklog(*kind.ask(command, folder, "--json"))
            assert ended.code in DOCUMENTED, (seed, how, command, ended.err)
            if ended.code in ANSWERED and command == "recovery-line" and how not in kind.unseen:
                hold(kind, whole, json.loads(ended.out), (seed, how))
        shutil.rmtree(folder)


def hold(kind: Kind, whole: Answer, found: Answer, what: tuple[int, str]) -> None:
    """Nothing is newer unless a new finding tells why, or a log begins later."""
    best = kind.measured(whole)
    newer = {key for key, value in kind.measured(found).items() if value > best.get(key, value)}
    later = {name for name, start in starts(found).items() if start > starts(whole).get(name, start)}
    unexplained = {key for key in newer if key[-1] not in later}
    assert not unexplained or told(found) - told(whole), (what, unexplained)


@pytest.mark.quarter
@pytest.mark.parametrize("name", KINDS)
def test_damage_ends_as_documented_and_makes_nothing_newer(name: str, tmp_path: Path) -> None:
    injure(name, range(60), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_much_more_damage(name: str, tmp_path: Path) -> None:
    injure(name, range(60, 1000), tmp_path)


@pytest.mark.parametrize("name", KINDS)
def test_strict_refuses_a_cut_file(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    target = {
        "kafka": f"orders-1/{0:020}.log",
        "checkmate": "worker-1-logs/join_sink_0.bin",
        "streams": "state/wordcount/1_0/.checkpoint",
    }[name]
    folder = tmp_path / "copy"
    shutil.copytree(SAMPLES / kind.sample, folder)
    data = (folder / target).read_bytes()
    (folder / target).write_bytes(data[: len(data) // 2])
    for command in COMMANDS:
        ended = cklog(*kind.ask(command, folder, "--strict"))
        assert (ended.code, ended.out) == (65, ""), ended.err


# --- base offsets, which no checksum covers


def one_log(folder: Path, base: int, which: int) -> Answer:
    """The answer about a log of three batches of two records, of which one has another base offset."""
    log = TopicLog()
    for _ in range(3):
        log.data(2)
    at = sorted(at for _, at in log.sizes)[which]
    log.segments[0][at : at + 8] = struct.pack(">q", base)
    log.write(folder / "t-0")
    answer: Answer = json.loads(cklog("recovery-line", folder / "t-0", "--json").out)
    return answer


@pytest.mark.parametrize("base", [2**63 - 1, 2**63 - 3, -1, -(2**63), 2**62, 2**40, 2**31])
def test_a_base_offset_that_no_segment_can_hold_ends_the_log_before_it(base: int, tmp_path: Path) -> None:
    for which, end in ((1, 2), (2, 4)):
        found = one_log(tmp_path / str(which), base, which)
        assert of_brokers(found)["log", "t-0"] == end
        assert found["verdict"] == "findings"


def test_a_base_offset_that_a_segment_could_hold_is_told(tmp_path: Path) -> None:
    assert ("offset-gap", "t-0") in told(one_log(tmp_path, 1000, 2))


def test_a_wrong_offset_in_an_older_segment_moves_no_end(tmp_path: Path) -> None:
    log = TopicLog()
    log.data(5)
    log.data(5)
    log.roll()
    log.data(5)
    second = sorted(at for base, at in log.sizes if base == 0)[1]
    log.segments[0][second : second + 8] = struct.pack(">q", 2**20)
    log.write(tmp_path / "t-0")
    found = json.loads(cklog("recovery-line", tmp_path, "--json").out)
    assert of_brokers(found)["log", "t-0"] == 15
    assert "offset-backwards" in {id for id, _ in told(found)}


def test_a_log_start_behind_the_logs_end_deletes_everything(tmp_path: Path) -> None:
    log = TopicLog()
    log.data(5)
    log.write(tmp_path / "t-0")
    broker_files(tmp_path, log_start={"t-0": 2**62})
    ended = cklog("recovery-line", tmp_path, "--json")
    found = json.loads(ended.out)
    assert ended.code == 3
    [cut] = found["result"]["details"]["cuts"]
    assert (cut["records"], cut["end"]) == (5, 5)
    assert any("delete every segment" in f["message"] for f in found["findings"])


# --- names


NAMES = ["new\nline", "esc\x1b[31mred", 'q"uo,te', "=cmd()", "@x", "a b", "é\u202e", "x" * 240, "..", "-", "{}", "\t"]


def shown(folder: Path, *more: str) -> Iterator[tuple[str, str, str]]:
    """(command, form, text) of every command in every form; what a terminal obeys is in CSV at the most."""
    for command in COMMANDS:
        for form in (*FORMS, *(replay_formats() if command == "replay" else ())):
            ended = cklog(command, folder, "--format", form, *(more if command != "inspect" else ()))
            assert ended.code in DOCUMENTED, (command, form, ended.err)
            assert form == "csv" or "\x1b" not in ended.out + ended.err, (command, form)
            yield command, form, ended.out


@pytest.mark.quarter
@pytest.mark.parametrize("name", NAMES, ids=[repr(name[:9]) for name in NAMES])
def test_hostile_names_of_topics_and_groups(name: str, tmp_path: Path) -> None:
    log, commits = TopicLog(), TopicLog()
    log.data(5)
    log.write(tmp_path / f"{name}-0")
    commits.segments[0] += commit_batch(0, [(name, name, 0, 99), ("g", name, 0, 3)])
    commits.write(tmp_path / "__consumer_offsets-0")
    broker_files(tmp_path)
    for _, form, text in shown(tmp_path):
        if form == "csv":
            rows = list(csv.reader(io.StringIO(text)))
            assert len({len(row) for row in rows}) == 1
            assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "@")]
        elif form == "kafka-csv":
            assert not text  # two groups, or a name that the tool would misread


def test_the_largest_offsets_and_partitions(tmp_path: Path) -> None:
    log, commits = TopicLog(), TopicLog(end=0)
    log.data(5)
    for name in ("t-999999999", "t-2147483647", "t-7", "t-007"):
        log.write(tmp_path / name)
    far = TopicLog(end=2**63 - 1000, segments={2**63 - 1000: bytearray()})
    far.data(5)
    far.write(tmp_path / "far-0")
    (tmp_path / "far-0" / f"{10**19}.log").write_bytes(b"")  # more than an offset can be
    asked = [("far", 0, 2**63 - 1), ("t", 2**31 - 1, 2**63 - 1), ("t", -1, 1), ("t", 7, 2**62), ("", 0, 1)]
    commits.segments[0] += commit_batch(0, [("g", *each) for each in asked])
    commits.write(tmp_path / "__consumer_offsets-0")
    broker_files(tmp_path, replication={"far-0": 2**63 - 1}, recovery_point={"far-0": 2**63 - 1})
    assert len(list(shown(tmp_path))) > 20
    found = json.loads(cklog("replay", tmp_path, "--json").out)
    ends = of_brokers(found)
    assert (ends["log", "far-0"], ends["log", "t-2147483647"], ends["log", "t-007-0"]) == (2**63 - 995, 5, 5)
    assert ends["group", "g", "t-2147483647"] == 5


IN_THE_WAY: dict[str, tuple[Callable[[Path], object], int, set[tuple[str, str]]]] = {
    "a link to PATH": (lambda home: os.symlink(home, home / "loop"), 0, set()),  # what it leads to is listed already
    "a link in a circle": (lambda home: os.symlink("self", home / "self"), 0, {("unfollowed-link", "self")}),
    "a link for a segment": (
        lambda home: os.symlink("/nonexistent", home / SEGMENT_5),
        5,
        {("unfollowed-link", SEGMENT_5), ("unreadable-file", SEGMENT_5), ("offset-gap", "t-0")},
    ),
    "a pipe for a segment": (lambda home: os.mkfifo(home / "t-0" / f"{7:020}.log"), 0, set()),  # no broker's
    "a folder for a segment": (lambda home: (home / "t-0" / f"{9:020}.log").mkdir(), 0, set()),
    "a file for a partition": (lambda home: (home / "t-1").write_bytes(b"x"), 0, set()),
}
"""What is put there, how the answers end, and what they tell."""


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_links_pipes_and_folders_where_segments_should_be(case: str, tmp_path: Path) -> None:
    """Only what may be a segment that nobody read makes an answer a bound."""
    put, code, findings = IN_THE_WAY[case]
    log = TopicLog()
    log.data(3)
    log.write(tmp_path / "t-0")
    put(tmp_path)
    for command in COMMANDS:
        ended = cklog(command, tmp_path, "--json")
        assert (ended.code, told(json.loads(ended.out))) == (code, findings), command
        assert "loop/" not in ended.out


def test_segments_without_a_byte(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    for base in (0, 5, 700):
        (tmp_path / "t-0" / f"{base:020}.log").write_bytes(b"")
    found = json.loads(cklog("recovery-line", tmp_path, "--json").out)
    assert of_brokers(found) == {("log", "t-0"): 700}
    assert ("empty-file", "t-0") in told(found)


def test_a_thousand_partitions(tmp_path: Path) -> None:
    log = TopicLog()
    log.data(2)
    for number in range(1000):
        log.write(tmp_path / f"t-{number}")
    found = json.loads(cklog("recovery-line", tmp_path, "--json").out)
    assert [e["subtask"] for e in found["result"]["line"]] == list(range(1000))


# --- proofs, refusals, files


@pytest.mark.parametrize("name", KINDS)
def test_the_line_that_is_told_is_proved(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    line = tmp_path / "line.json"
    told_of = cklog("recovery-line", SAMPLES / kind.sample / kind.path, "--json", "-o", line)
    assert (told_of.out, told_of.code in ANSWERED) == ("", True)
    ended = cklog("verify", SAMPLES / kind.sample / kind.path, "--line", line, "--maximal", "--json")
    checks = json.loads(ended.out)["result"]["checks"]
    assert ended.code in ANSWERED
    assert not [check for check in checks if check["holds"] is False]


REFUSED: dict[tuple[str, ...], set[int]] = {
    ("retention",): {66},
    ("extent",): {66},
    ("eventual-checkpoint",): {66},
    ("compare",): {2},
    ("recovery-line", "--group", "g"): {2, 66},  # 66: a Kafka folder without such a group
    ("recovery-line", "--channel", "x=t-0"): {2},
    ("recovery-line", "-o", "no/such/folder"): {73},
    ("replay", "--format", "nonsense"): {2},
    ("replay", "--rollback", "--format", "kafka-csv"): {2},
    ("verify", "--line", "nowhere.json"): {2, 66},
}


REFUSALS = [(name, asked) for name in KINDS for asked in REFUSED if (name, asked) != ("checkmate", ("retention",))]
"""CheckMate's snapshots are checkpoints like others: what of them may go has an answer."""


@pytest.mark.parametrize(("name", "asked"), REFUSALS, ids=[f"{name} {' '.join(asked)}" for name, asked in REFUSALS])
def test_what_cannot_be_answered_is_refused_in_one_line(name: str, asked: tuple[str, ...]) -> None:
    kind = KINDS[name]
    ended = cklog(asked[0], SAMPLES / kind.sample / kind.path, *asked[1:])
    assert (ended.code in REFUSED[asked], ended.out) == (True, ""), ended.err
    lines = ended.err.splitlines()
    assert lines[0].startswith("cklog: ")
    assert len(lines) <= 2


@pytest.mark.parametrize("name", ["kafka", "streams"])
@pytest.mark.parametrize("option", [("--failed", "x"), ("--at", "x/0=1"), ("--as-of", "5"), ("--against", "x")])
def test_questions_that_have_no_meaning_here_are_not_passed_over(name: str, option: tuple[str, str]) -> None:
    kind = KINDS[name]
    assert cklog("replay", SAMPLES / kind.sample / kind.path, *option).code == 2


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", KINDS)
def test_spark_tells_the_same_bytes(name: str) -> None:
    kind = KINDS[name]
    local = cklog(*kind.ask("recovery-line", SAMPLES / kind.sample, "--json", "--engine", "local"))
    spark = cklog(*kind.ask("recovery-line", SAMPLES / kind.sample, "--json", "--engine", "spark"))
    assert (spark.code, spark.out) == (local.code, local.out)

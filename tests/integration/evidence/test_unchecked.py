"""What an action takes for granted is in the answer, and an option that compares it takes it away."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import click
import pytest
from typer.main import get_command

from cklog.commands.app import app
from cklog.model.unchecked import Unchecked, unchecked_sentence
from tests.builders import flink as fb
from tests.builders.kafka_broker import TopicLog
from tests.conftest import SAMPLES
from tests.program import cklog

FLINK, JOIN, WORDCOUNT = SAMPLES / "flink-orders", SAMPLES / "uncoordinated-join", SAMPLES / "spark-wordcount"
TABLES = "the tables that the job writes agree with this line"


def unchecked(*words: Any) -> list[tuple[str, str, str | None]]:
    """What the runs of an answer take for granted: kind, claim, option."""
    ended = cklog("recovery-line", *words, "--json", "--fail-on", "never")
    runs: list[dict[str, Any]] = json.loads(ended.out)["result"]["runs"]
    return [(row["kind"], row["claim"], row["option"]) for run in runs for row in run["unchecked"]]


def test_every_source_is_named_with_its_position_until_logs_are_given() -> None:
    expected = {"orders-0": 1043, "payments-0": 1044}
    claims = [f"source {name} still has offset {offset}" for name, offset in expected.items()]
    assert unchecked(JOIN) == [("source", claim, "--kafka FOLDER") for claim in claims]
    left = unchecked(JOIN, "--kafka", SAMPLES / "kafka-broker", "--channel", "payments-0=orders-1")
    assert left == []  # orders-0 is a partition there; both are compared, whatever comes of it
    assert [row[1] for row in unchecked(JOIN, "--kafka", SAMPLES / "kafka-broker")] == [claims[1]]


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("command", ["recovery-line", "replay", "impact", "runbook", "report"])
def test_a_topic_that_is_looked_for_and_not_found_is_an_error(tmp_path: Path, command: str, here: bool) -> None:
    """A broker may have some partitions of a topic; where it has none, nothing shows that the topic still exists."""
    log = TopicLog()
    log.data(3000)
    log.write(tmp_path / ("orders-0" if here else "other-0"))
    ended = cklog(command, FLINK, "--kafka", tmp_path, "--json")
    answer = json.loads(ended.out)
    found = {f["id"]: (f["severity"], f["effect"], f["message"]) for f in answer["findings"]}
    assert ("missing-topic" in found, "partition-elsewhere" in found) == (not here, here)
    if here:
        assert "orders-1, orders-2, orders-3: not in the FOLDER of --kafka" in found["partition-elsewhere"][2]
        assert ended.code == 0
    else:
        assert found["missing-topic"][:2] == ("error", "unknown")
        assert "topic orders: the FOLDER of --kafka has none of its partitions" in found["missing-topic"][2]
        assert (ended.code, answer["verdict"]) == (5, "indeterminate")
    assert answer["result"].get("action", "") in ("", "restart" if here else "undetermined")


def test_partitions_of_another_broker_are_named_with_what_compares_them(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-2"):
        log = TopicLog()
        log.data(3000)
        log.write(tmp_path / name)
    left = [row for row in unchecked(FLINK, "--kafka", tmp_path) if row[0] == "source"]
    assert left == [
        ("source", f"source {name} still has offset 20{at}", "--kafka FOLDER of another broker")
        for name, at in (("orders-1", 86), ("orders-3", 84))
    ]
    assert cklog("recovery-line", FLINK, "--kafka", tmp_path, "--fail-on", "unchecked").code == 5


def test_state_and_tables_are_named_until_their_options_are_given() -> None:
    rows = unchecked(FLINK)
    assert [kind for kind, _, _ in rows] == ["state"] + ["source"] * 4 + ["sink", "state"]
    assert rows[5:] == [
        ("sink", TABLES, "--sink URI"),
        ("state", "every byte of the state files is intact", "--check-contents"),
    ]
    assert unchecked(FLINK, "--check-contents")[6][2] is None, "state in a layout of the job's own stays unread"
    job = SAMPLES / "tables" / "flink-older-checkpoint"
    assert TABLES in [claim for _, claim, _ in unchecked(job / "checkpoints")]
    assert TABLES not in [claim for _, claim, _ in unchecked(job / "checkpoints", "--sink", job / "table")]


def test_state_inside_the_metadata_of_flink_is_named_in_one_row(tmp_path: Path) -> None:
    """Neither Flink's metadata nor an inlined handle has a checksum: a changed byte of a value stays unseen."""
    value = b"a value whose bytes nothing covers"
    subtasks = [fb.subtask(6, n, keyed=fb.key_groups(3, fb.inline(value))) for n in range(2)]
    checkpoint = tmp_path / ("a" * 32) / "chk-7"
    checkpoint.mkdir(parents=True)
    made = fb.metadata(6, [fb.operator(6, subtasks)], checkpoint=7, properties=fb.properties((), "Checkpoint"))
    whole = made.data
    for data in (whole, whole.replace(value, value.replace(b"v", b"w"))):
        (checkpoint / "_metadata").write_bytes(data)
        about = [row for row in unchecked(tmp_path) if "_metadata" in row[1]]
        claim = f"the state inside _metadata is intact ({2 * len(value)} bytes without a checksum)"
        assert about == [("state", claim, None)]
        assert cklog("recovery-line", tmp_path, "--check-contents", "--fail-on", "unchecked").code == 5


def test_a_query_without_a_state_folder_is_not_proved_stateless(tmp_path: Path) -> None:
    """Spark 4.3 fails if the query has state (STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY)."""
    run = shutil.copytree(SAMPLES / "spark-state-hdfs", tmp_path / "run")
    shutil.rmtree(run / "ck/state")
    assert ("state", "the query keeps no state (there is no state folder)", None) in unchecked(run)
    assert cklog("recovery-line", run, "--fail-on", "unchecked").code == 5


def test_a_file_sink_that_was_read_is_not_named_but_files_elsewhere_are(tmp_path: Path) -> None:
    assert unchecked(WORDCOUNT) == [
        ("state", "every operator with state has a folder here: no commit names them", None),
        ("file", "the files outside PATH exist", "--map OLD=NEW"),
    ]
    shutil.copytree(WORDCOUNT / "ck", tmp_path / "alone")
    assert ("sink", TABLES, "--sink URI") in unchecked(tmp_path / "alone")


def test_connectors_name_sources_until_their_begin_is_told() -> None:
    rows = unchecked(SAMPLES / "connect-offsets")
    assert rows
    assert {(kind, option) for kind, _, option in rows} == {("source", "--source-from NAME=POSITION")}


def test_fail_on_unchecked_is_exit_5_where_an_answer_is_exit_0() -> None:
    asked = ("recovery-line", "scan")
    codes = {
        ask: [cklog(ask, run, "--fail-on", "unchecked").code for run in (JOIN, SAMPLES / "domino-cycle")]
        for ask in asked
    }
    assert codes == {"recovery-line": [5, 0], "scan": [5, 0]}
    assert cklog("recovery-line", JOIN).code == 0
    broken = cklog("recovery-line", SAMPLES / "kafka-broker", "--fail-on", "unchecked").code
    assert broken == cklog("recovery-line", SAMPLES / "kafka-broker").code == 3


ON_A_LINE = ("recovery-line", "replay", "runbook", "report", "scan", "impact", "impact --guarantee", "retention")
"""Commands whose answer rests on a line; verify and diff are asked with a file besides."""

OF_WHAT_IS_READ = {
    *("inspect", "graph", "z-cycles", "compare", "chain", "rounds", "extent", "eventual-checkpoint", "latency"),
    *("advise extent", "advise delta", "advise timing", "advise protocol"),
}
"""Commands whose answer is about what was read, and that go by their findings."""


def leaves(group: Any, words: str = "") -> dict[str, Any]:
    """Every command of a group, and of those in it, by its words."""
    found: dict[str, Any] = {}
    for name in group.list_commands(click.Context(group)):
        one = group.get_command(click.Context(group), name)
        path = f"{words} {name}".strip()
        found |= leaves(one, path) if hasattr(one, "list_commands") else {path: one}
    return found


def test_every_command_with_fail_on_rests_on_a_line_or_says_what_was_read() -> None:
    having = {
        name
        for name, one in leaves(get_command(app)).items()
        if any("--fail-on" in parameter.opts for parameter in one.params)
    }
    assert having == {*ON_A_LINE} - {"impact --guarantee"} | OF_WHAT_IS_READ | {"verify", "diff"}


@pytest.mark.parametrize("words", ON_A_LINE)
def test_a_command_that_rests_on_a_line_is_exit_5_where_the_line_is(words: str) -> None:
    asked = [(run, words.split()) for run in (JOIN, FLINK, SAMPLES / "domino-cycle")]
    ended = [cklog(*command, run, "--fail-on", "unchecked") for run, command in asked]
    assert [one.code for one in ended] == [5, 5, 0]
    assert [cklog(*command, run).code for run, command in asked] == [0, 0, 0]
    assert all("Not checked: whether " in one.out + one.err for one in ended[:2]) or words == "scan"


def test_verify_and_diff_are_exit_5_where_their_line_is(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(cklog("recovery-line", JOIN, "--json").out)
    assert cklog("verify", JOIN, "--line", answer).code == 0
    assert cklog("verify", JOIN, "--line", answer, "--fail-on", "unchecked").code == 5
    for before, after in ((answer, JOIN), (JOIN, answer)):
        assert [cklog("diff", before, after, *more).code for more in ([], ["--fail-on", "unchecked"])] == [0, 5]


def test_a_finding_that_something_was_not_looked_at_counts_in_every_command() -> None:
    ended = cklog("inspect", FLINK, "--fail-on", "unchecked")
    assert (ended.code, cklog("inspect", FLINK).code) == (5, 0)
    assert "Not checked: whether " in ended.err


@pytest.mark.parametrize("run", [JOIN, FLINK, WORDCOUNT])
def test_the_text_has_one_sentence_and_explain_has_every_row(run: Path) -> None:
    plain, explained = (cklog("recovery-line", run, *more).out for more in ([], ["--explain"]))
    assert plain.count("Not checked") == 1
    assert all(claim in explained for _, claim, _ in unchecked(run))


def test_the_sentence_stays_short_however_much_was_not_compared() -> None:
    rows = [Unchecked("source", f"t-{i}", f"source t-{i} still has offset {i}", "--kafka FOLDER") for i in range(1000)]
    assert unchecked_sentence(rows) == (
        "Not checked: whether 1000 sources still have the positions at which they resume (--kafka FOLDER)."
    )
    assert unchecked_sentence([]) == ""


def claims_by_option(*words: Any) -> dict[str | None, list[str]]:
    """What is not checked of sources, by the option that checks it."""
    found: dict[str | None, list[str]] = {}
    for kind, claim, option in unchecked(*words):
        if kind == "source":
            found.setdefault(option, []).append(claim)
    return found


OFFSETS = {"kafka": '{"orders":{"0":7}}', "rate": "7", "file": '{"logOffset":0}', "other": '{"seq":7}', "none": "-"}


@pytest.mark.parametrize("source", OFFSETS)
def test_an_option_is_named_only_where_it_compares_the_source(source: str, tmp_path: Path) -> None:
    head = '{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}'
    files = {"metadata": '{"id":"q"}', "offsets/0": f"v1\n{head}\n{OFFSETS[source]}", "commits/0": "v1\n{}"}
    files["sources/0/0"] = 'v1\n{"path":"file:///in/a","timestamp":1,"batchId":0}' if source == "file" else "v1\n5"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    expected = {
        "kafka": {"--kafka FOLDER": ["source orders-0 still has offset 7"]},
        "rate": {None: ["source source/0 still has offset 7"]},
        "file": {},
        "other": {None: ['source source/0 still has position {"seq": 7}']},
        "none": {None: ["source source/0 still has its first record"]},
    }
    assert claims_by_option(tmp_path) == expected[source]


@pytest.mark.parametrize("command", ["recovery-line", "replay", "runbook", "report"])
@pytest.mark.parametrize("brief", [(), ("--brief",)])
def test_text_says_in_one_line_what_was_not_checked(command: str, brief: tuple[str, ...]) -> None:
    ended = cklog(command, WORDCOUNT, *brief)
    assert sum(line.startswith("Not checked: whether ") for line in ended.out.splitlines()) == 1


@pytest.mark.parametrize("brief", [(), ("--brief",)])
def test_a_scan_says_how_much_was_not_checked(brief: tuple[str, ...]) -> None:
    lines = cklog("scan", WORDCOUNT, SAMPLES / "domino-cycle", *brief).out.splitlines()
    count = len(unchecked(WORDCOUNT))
    assert [line for line in lines if line.startswith("Not checked")] == [
        f"Not checked: {count} things on which 1 of 2 runs depend. cklog recovery-line PATH names them."
    ]
    assert "Not checked" not in cklog("scan", SAMPLES / "domino-cycle", *brief).out


@pytest.mark.parametrize("place", ["state", "sources/0"])
def test_what_lies_behind_a_link_is_named_with_the_option_that_follows_it(place: str, tmp_path: Path) -> None:
    run = shutil.copytree(WORDCOUNT, tmp_path / "run")
    outside = (run / "ck" / place).rename(tmp_path / "outside")
    (run / "ck" / place).symlink_to(outside)
    claim = f"ck/{place}, a link that was not followed, leads to what a restart needs"
    rows = unchecked(run)
    assert ("stored-elsewhere", claim, "--follow-links") in rows
    assert not any("keeps no state" in one for _, one, _ in rows)
    assert cklog("recovery-line", run).code == 5
    assert "stored-elsewhere" not in [kind for kind, _, _ in unchecked(run, "--follow-links")]

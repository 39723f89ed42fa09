"""Answers to keywords are those of the command line, and every way out of a result says the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, assert_type

import pyarrow as pa
import pytest

import cklog
from cklog.library.tables import arrow_table
from tests.conftest import SAMPLES
from tests.program import cklog as program

JOIN, DOMINO, CEC = SAMPLES / "uncoordinated-join", SAMPLES / "domino-cycle", SAMPLES / "cec-aggregate"
REACH, CIC, ROUNDS = SAMPLES / "reachability-uncoordinated", SAMPLES / "reachability-cic", SAMPLES / "q3-coordinated"
FLINK, WORDS = SAMPLES / "flink-orders", SAMPLES / "spark-wordcount"
SINK = SAMPLES / "sink-latency"

Asked = Callable[[cklog.CrashedRun], cklog.Result[Any]]
CASES: list[tuple[Path, list[str], Asked]] = [
    (JOIN, ["recovery-line"], lambda run: run.recovery_line()),
    (JOIN, ["recovery-line", "--failed", "join/0,sink"], lambda run: run.recovery_line(failed=["join/0", "sink"])),
    (JOIN, ["recovery-line", "--failed", "join"], lambda run: run.recovery_line(failed="join")),
    (
        JOIN,
        ["recovery-line", "--as-of", "2026-01-01T00:00:10", "--explain"],
        lambda run: run.recovery_line(as_of=datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC), explain=True),
    ),
    (
        JOIN,
        ["recovery-line", "--at", "join/0=2", "--earliest"],
        lambda run: run.recovery_line(at={"join/0": 2}, earliest=True),
    ),
    (DOMINO, ["recovery-line", "--at", "op1/0=1,op2/0=3"], lambda run: run.recovery_line(at={"op1/0": 1, "op2/0": 3})),
    (FLINK, ["recovery-line"], lambda run: run.recovery_line()),
    (WORDS, ["recovery-line"], lambda run: run.recovery_line()),
    (JOIN, ["replay"], lambda run: run.replay()),
    (FLINK, ["replay", "--against", "chk-11"], lambda run: run.replay(against="chk-11")),
    (JOIN, ["inspect", "--metrics"], lambda run: run.inspect(metrics=True)),
    (JOIN, ["inspect"], lambda run: run.inspect()),
    (DOMINO, ["recovery-line", "--failed-at", "all"], lambda run: run.failures_over_time()),
    (JOIN, ["retention", "--keep", "2"], lambda run: run.retention(keep=2)),
    (
        JOIN,
        ["retention", "--window", "5s", "--now", "2026-01-01T00:00:20", "--pin", "join/0=1"],
        lambda run: run.retention(window_ms=5000, now="2026-01-01T00:00:20", pins="join/0=1"),
    ),
    (SAMPLES / "incremental", ["chain"], lambda run: run.chain()),
    (DOMINO, ["graph", "--last", "2"], lambda run: run.graph(last=2)),
    (DOMINO, ["graph", "--around", "op1/0=2"], lambda run: run.graph(around="op1/0=2")),
    (DOMINO, ["graph", "--kind", "rollback"], lambda run: run.graph(kind="rollback")),
    (DOMINO, ["z-cycles"], lambda run: run.z_cycles()),
    (CIC, ["z-cycles", "--audit-cic"], lambda run: run.audit_cic()),
    (JOIN, ["impact"], lambda run: run.impact()),
    (JOIN, ["impact", "--guarantee"], lambda run: run.guarantees()),
    (
        SINK,
        ["latency", "--results", str(SINK / "results"), "--event-time", "created"],
        lambda run: run.latency(results=SINK / "results", event_time="created"),
    ),
    (ROUNDS, ["rounds"], lambda run: run.rounds()),
    (CEC, ["extent", "--operator", "agg1"], lambda run: run.extent("agg1")),
    (CEC, ["eventual-checkpoint", "--operator", "agg1"], lambda run: run.eventual_checkpoint("agg1")),
    (
        CEC,
        ["advise", "extent", "--operator", "agg1", "--q", "10,none"],
        lambda run: run.advise_extent("agg1", q=["10", "none"]),
    ),
    (SAMPLES / "incremental", ["advise", "delta"], lambda run: run.advise_delta()),
    (JOIN, ["advise", "protocol", "--mtbf", "2"], lambda run: run.advise_protocol(between_failures_h=2)),
]


@pytest.mark.quarter
@pytest.mark.parametrize(("folder", "args", "ask"), CASES, ids=[" ".join(args)[:50] for _, args, _ in CASES])
def test_keywords_get_the_answer_of_the_command(folder: Path, args: list[str], ask: Asked) -> None:
    words = args[:2] if args[0] == "advise" else args[:1]
    ended = program(*words, folder, *args[len(words) :], "--json")
    with cklog.open(folder) as run:
        found = ask(run)
    assert found.to_json() == ended.out
    assert found.to_dict() == json.loads(ended.out)
    assert found.exit_code == ended.code
    assert str(found) == program(*words, folder, *args[len(words) :]).out
    assert found.headline in str(found)
    for name in found.tables:
        assert_same_rows(found.to_arrow(name), rows_named(found, name))
        assert len(found.to_pandas(name)) == found.to_arrow(name).num_rows
    fragment = Tags(found._repr_html_())
    assert not fragment.tags & {"script", "style", "img", "iframe", "a"}


def test_an_answer_is_a_line_that_can_be_proved() -> None:
    for folder in (JOIN, FLINK):
        run = cklog.open(folder, maps={"file:///srv/cklog-sample/flink-orders": str(FLINK)})
        line = run.recovery_line()
        assert run.verify(line, maximal=True).result.summary.startswith("Proved: ")
    line = cklog.open(JOIN).recovery_line()
    given = {f"{entry.operator}/{entry.subtask}": entry.checkpoint for entry in line.result.line}
    run = cklog.open(JOIN)
    assert run.verify_restored(line).to_dict() == run.verify_restored(given).to_dict()


def test_words_that_are_not_known_are_refused() -> None:
    run = cklog.open(DOMINO)
    with pytest.raises(cklog.UsageError, match="not one of table, json"):
        run.recovery_line().to_text("prometheus")
    with pytest.raises(cklog.UsageError, match="not one of checkpoint, rollback"):
        run.graph(kind="rolback")  # type: ignore[arg-type]


def test_a_notebook_shows_what_to_do() -> None:
    found = cklog.open(JOIN).recovery_line()
    action = str(found).splitlines()[1]
    assert action.startswith("Action: restart (")
    assert f"<p>{escape(action)}</p>" in found._repr_html_()


def rows_named(found: cklog.Result[Any], name: str) -> list[dict[str, Any]]:
    told = found.to_dict()
    rows: list[dict[str, Any]] = told[name] if name in ("findings", "inputs") else told["result"][name]
    return rows


def assert_same_rows(table: pa.Table, rows: list[dict[str, Any]]) -> None:
    """The rows of a table are those of the JSON; times are timestamps there, and values of any kind JSON text."""
    assert table.num_rows == len(rows)
    for found, row in zip(table.to_pylist(), rows, strict=True):
        assert found.keys() >= row.keys()
        for column, value in row.items():
            assert same(found[column], value), column


def same(shown: Any, value: Any) -> bool:
    """Whether a cell of a table is a value of the JSON."""
    if isinstance(shown, datetime):
        return bool(round(shown.timestamp() * 1000) == value)
    if isinstance(shown, str) and not isinstance(value, str):
        return bool(json.loads(shown) == value)
    if isinstance(shown, list) and isinstance(value, list):
        return len(shown) == len(value) and all(map(same, shown, value))
    if isinstance(shown, dict) and isinstance(value, dict):
        return shown.keys() >= value.keys() and all(same(shown[key], found) for key, found in value.items())
    return bool(shown == value)


class Tags(HTMLParser):
    """The tags, attributes and text of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_types_are_known_to_checkers() -> None:
    with cklog.open(JOIN) as run:
        assert_type(run.recovery_line(), cklog.Result[cklog.RecoveryLine])
        assert_type(run.recovery_line().result.line[0].checkpoint, int | None)
        assert_type(run.retention().result, cklog.RetentionPlan)
        assert_type(run.graph().to_svg(), str)
        assert_type(run, cklog.CrashedRun)


def test_columns_are_typed_where_there_are_no_rows() -> None:
    with cklog.open(JOIN) as run:
        line = run.recovery_line()
    useless = line.to_arrow("useless")
    assert (useless.num_rows, str(useless.schema.field("subtask").type)) == (0, "int64")
    assert str(line.to_arrow().schema.field("time").type) == "timestamp[ms, tz=UTC]"
    assert str(line.to_pandas().dtypes["checkpoint"]) == "Int64"
    with pytest.raises(cklog.UsageError, match="table lines: not one of line"):
        line.to_arrow("lines")


def test_pandas_is_asked_for_where_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with cklog.open(JOIN) as run:
        line = run.recovery_line()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(cklog.UsageError, match="needs pandas"):
        line.to_pandas()
    assert line.to_arrow().num_rows == 5


def test_a_graph_is_what_the_command_exports_and_draws() -> None:
    with cklog.open(DOMINO) as run:
        graph = run.graph()
        rollback = run.graph(kind="rollback")
    assert graph.to_svg() == program("graph", DOMINO, "--format", "svg").out == graph._repr_svg_()
    folded = program("graph", DOMINO, "--format", "svg", "--fold", "--width", "700").out
    assert graph.to_svg(fold=True, width=700) == folded
    assert graph.to_dot() == program("graph", DOMINO, "--format", "dot").out
    assert graph.to_mermaid() == program("graph", DOMINO, "--format", "mermaid").out
    assert graph.to_png().startswith(b"\x89PNG")
    assert graph.to_pdf().startswith(b"%PDF")
    nodes = program("graph", DOMINO, "--json")
    assert set(graph.to_networkx()) == {node["id"] for node in json.loads(nodes.out)["result"]["nodes"]}
    assert graph.tables[:2] == ("nodes", "edges")
    assert graph._repr_svg_() in graph._repr_html_()  # type: ignore[operator]
    assert rollback._repr_svg_() is None  # intervals have no space-time diagram
    assert "<table>" in rollback._repr_html_()


def test_a_run_is_opened_as_the_options_of_every_command_say() -> None:
    old = "file:///srv/cklog-sample/wordcount"
    with cklog.open(str(WORDS), maps={old: str(WORDS)}, source="spark-checkpoint", engine="local") as run:
        assert run.format == "spark-checkpoint"
        assert run.recovery_line().to_json() == program("recovery-line", WORDS, "--map", f"{old}={WORDS}", "--json").out
    with pytest.raises(cklog.UsageError, match="empty prefix"):
        cklog.open(WORDS, maps={"": "x"})


def test_several_runs_side_by_side() -> None:
    with cklog.open(REACH) as one, cklog.open(CIC) as other:
        assert one.compare(other).to_json() == program("compare", REACH, CIC, "--json").out


def test_a_run_is_asked_again_after_it_was_closed() -> None:
    run = cklog.open(JOIN)
    first = run.recovery_line()
    run.close()
    assert run.recovery_line() == first


def test_what_was_said_on_the_way_belongs_to_its_answer() -> None:
    with cklog.open(JOIN, engine="local") as run:
        assert run.latency.__name__ == "latency"
        assert run.recovery_line().spoken == ()
    with cklog.open(CEC) as run:
        told = run.extent("agg1").spoken
        assert told
        assert run.inspect().spoken == ()


@pytest.mark.parametrize(
    "ask",
    [
        lambda run: run.recovery_line(at={"join/0": "3"}),
        lambda run: run.recovery_line(as_of="soon"),
        lambda run: run.recovery_line(group="g"),
        lambda run: run.graph(around="join"),
        lambda run: run.graph(last=0),
        lambda run: run.latency(results="x"),
        lambda run: run.latency(step_ms=0),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(ask: Callable[[cklog.CrashedRun], object]) -> None:
    with cklog.open(JOIN) as run, pytest.raises(cklog.UsageError) as refused:
        ask(run)
    assert refused.value.exit_code == 2


HOSTILE = [
    "<script>alert(1)</script>",
    "a\x1b[31m&amp;",
    'x" onclick="y',
    "</td></div>",
    "s3://me:secret@b/x",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_mean_harm_stay_text(tmp_path: Path, name: str) -> None:
    rows = [
        {
            "operator": name,
            "subtask": 0,
            "checkpoint": 1,
            "time": 2**62,
            "uri": name,
            "sent": {f"{name}/0->b/0": 2**62},
        },
        {"operator": "b", "subtask": 0, "checkpoint": 1, "time": -5, "received": {f"{name}/0->b/0": 1}},
    ]
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with cklog.open(tmp_path) as run:
        line, graph = run.recovery_line(), run.graph()
    for found in (line, graph):
        page = Tags(found._repr_html_())
        assert not page.tags & {"script", "style", "img", "iframe", "a"}
        assert not {name for name in page.attributes if name.startswith("on")}
        assert "\x1b" not in page.text
        assert "secret" not in page.text + str(found) + repr(found)
        for table in found.tables:
            found.to_arrow(table).to_pylist()
            found.to_pandas(table)
    assert graph.to_svg() == graph.to_svg()


def test_what_no_column_can_hold_is_kept_as_text() -> None:
    rows = [{"id": "\ud800", "severity": "error", "subject": "a", "message": "m", "where": []}]
    assert arrow_table(rows, cklog.Finding).column("id").to_pylist() == ["\\ud800"]
    large = [{"operator": "a", "subtask": 2**70, "checkpoint": 1}]
    assert arrow_table(large, cklog.CheckpointId).column("subtask").to_pylist() == [str(2**70)]
    mixed = arrow_table([{"a": 1, "time": 5}, {"a": "x"}, {"b": {"c": 1}}], None).to_pylist()
    assert mixed[0] == {"a": "1", "time": datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC), "b": None}
    assert mixed[1:] == [{"a": "x", "time": None, "b": None}, {"a": None, "time": None, "b": '{"c": 1}'}]

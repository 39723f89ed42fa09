"""Several runs below one PATH: none is answered for another silently."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cklog.errors import NotFound
from cklog.kinds.opening import choose, runs_of
from cklog.model.question import InspectQuestion, Question
from cklog.render.formats import plain
from cklog.run import Options, open_run
from cklog.storage import Root
from tests.conftest import SAMPLES
from tests.program import cklog

SPARK, FLINK, KAFKA = "spark-wordcount", "flink-orders", "kafka-broker"
STREAMS, NATIVE, OTHER = "kafka-streams-state", "uncoordinated-join", "domino-cycle"
FORMATS = {SPARK: "spark-checkpoint", FLINK: "flink", KAFKA: "kafka", STREAMS: "kafka-streams"}
FORMATS |= {NATIVE: "native", OTHER: "native", "patent-store": "patent-store", "checkmate-uncoordinated": "checkmate"}


def side_by_side(folder: Path, *samples: str) -> Path:
    """Samples as folders of one PATH, each by its own name, with a number where it is there already."""
    for sample in samples:
        place = folder / sample
        shutil.copytree(SAMPLES / sample, place if not place.exists() else folder / f"{sample}-2")
    return folder


def found(folder: Path) -> set[tuple[str, str]]:
    return {(run.folder.split("/")[0], run.format) for run in runs_of(Root(str(folder)))}


@pytest.mark.parametrize(
    "samples",
    [
        (SPARK, FLINK, KAFKA),
        (SPARK, FLINK),
        (FLINK, KAFKA),
        (SPARK, KAFKA),
        (NATIVE, FLINK),
        (NATIVE, OTHER),
        (STREAMS, SPARK),
        (STREAMS, KAFKA, FLINK),
        ("patent-store", FLINK),
        ("checkmate-uncoordinated", KAFKA),
    ],
    ids=lambda samples: "+".join(samples),
)
def test_every_run_is_found_and_none_is_answered_for_all(tmp_path: Path, samples: tuple[str, ...]) -> None:
    folder = side_by_side(tmp_path, *samples)
    assert found(folder) == {(sample, FORMATS[sample]) for sample in samples}
    for command in ("recovery-line", "replay", "retention", "chain", "impact", "graph", "extent"):
        ended = cklog(command, folder)
        assert ended.code == 66, command
        assert all(sample in ended.err for sample in samples)


def test_two_queries_side_by_side(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path, SPARK, SPARK)
    with pytest.raises(NotFound, match="2 runs lie here") as refused, open_run(str(folder)) as run:
        run.recovery_line(Question())
    assert "--run NAME" in refused.value.hint


@pytest.mark.parametrize("sample", [SPARK, FLINK, KAFKA, NATIVE])
def test_a_run_that_is_named_is_answered_as_it_is_alone(tmp_path: Path, sample: str) -> None:
    folder = side_by_side(tmp_path, SPARK, FLINK, KAFKA, NATIVE)
    [one] = [run for run in runs_of(Root(str(folder))) if run.format == FORMATS[sample]]
    with open_run(str(folder), Options(run=one.name)) as run:
        named = run.recovery_line(Question())
    place = Path(one.folder).parent if sample == SPARK else Path(one.folder)  # with the output of its file sink
    with open_run(str(folder / place)) as run:
        alone = run.recovery_line(Question())
    assert named == alone


def test_stores_are_answered_with_the_changelogs_beside_them(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / STREAMS, tmp_path / "root/app")
    for path in (tmp_path / "root", tmp_path / "root/app"):
        assert cklog("recovery-line", path).code == 3, "stores are beyond their changelogs"


@pytest.mark.parametrize("above", ["", "deep"])
def test_a_query_is_answered_with_its_sink_wherever_path_is(tmp_path: Path, above: str) -> None:
    folder = tmp_path / "root" / above
    shutil.copytree(SAMPLES / "spark-wordcount", folder / "query")
    (folder / "query/out/_spark_metadata/5").unlink()
    (folder / "query/out/_spark_metadata/.5.crc").unlink(missing_ok=True)
    asked = [folder / "query", tmp_path / "root", folder]
    answers = [json.loads(cklog("recovery-line", path, "--json").out) for path in asked]
    assert {"sink-log-behind"} <= {f["id"] for f in answers[0]["findings"]}
    assert len({answer["result"]["action"] for answer in answers}) == 1
    found = "deep/query" if above else "query"
    said = cklog("recovery-line", tmp_path / "root").err
    assert said == f"the one run below PATH is {found} (spark-checkpoint)\n", "commands are relative to it"


def test_the_format_chooses_too(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path, SPARK, FLINK)
    assert choose(Root(str(folder)), source="flink").parser.name == "flink"
    with pytest.raises(NotFound, match="2 runs"):
        choose(Root(str(side_by_side(tmp_path, SPARK))), source="spark-checkpoint")


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    ended = cklog("recovery-line", side_by_side(tmp_path, SPARK, FLINK), "--run", "nowhere")
    assert ended.code == 66
    assert "no such run" in ended.err
    assert SPARK in ended.err


def test_inspect_lists_them_all(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path, SPARK, FLINK, KAFKA)
    with open_run(str(folder)) as run:
        answer = run.inspect(InspectQuestion())
    assert answer.exit_code == 0
    assert [row["format"] for row in plain(answer.result)["runs"]] == ["flink", "kafka", "spark-checkpoint"]
    told = json.loads(cklog("inspect", folder, "--json").out)
    assert told["result"]["summary"].startswith("3 runs lie here")
    assert all(sample in cklog("inspect", folder).out for sample in (SPARK, FLINK, KAFKA))


def test_one_run_further_down_is_opened_and_named_on_stderr(tmp_path: Path) -> None:
    side_by_side(tmp_path / "a" / "b", NATIVE)
    ended = cklog("recovery-line", tmp_path)
    assert ended.out == cklog("recovery-line", SAMPLES / NATIVE).out
    assert f"a/b/{NATIVE} (native)" in ended.err


def test_what_a_run_folder_holds_is_its_own(tmp_path: Path) -> None:
    """A run folder's channels may be partitions of Kafka, and a broker's logs may lie in it."""
    folder = side_by_side(tmp_path, "cec-aggregate-kafka")
    assert found(folder / "cec-aggregate-kafka") == {("", "native")}


def test_changelogs_beside_a_state_folder_are_read_with_it(tmp_path: Path) -> None:
    assert runs_of(Root(str(side_by_side(tmp_path, STREAMS)))) == [(STREAMS, "kafka-streams")]
    assert runs_of(Root(str(side_by_side(tmp_path, KAFKA)))) == [("", "kafka-streams")]
    side_by_side(tmp_path, FLINK)
    assert found(tmp_path) == {(STREAMS, "kafka-streams"), (KAFKA, "kafka"), (FLINK, "flink")}


def test_a_folder_called_checkpoints_is_no_run_folder_by_that(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / FLINK, tmp_path / "checkpoints")
    assert choose(Root(str(tmp_path))).parser.name == "flink"

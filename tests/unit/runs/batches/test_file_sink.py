"""The log of a file sink: a hole in it stops the query where the log is compacted, and not before.

What the log lists has to be there: a restart does not write it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from cklog.model.findings import Finding
from cklog.model.question import Question
from cklog.model.verdict import conclude
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.line import BatchLog
from cklog.runs.batches.plan import BatchPlan, plan_of
from tests.builders.spark import Memory, batch_time, sample
from tests.reading.spark import said

HEAD = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}\n'
ENTRY = b'v1\n{"path":"file:///out/part-%s","size":1,"action":"add"}'


def written(committed: int, entries: list[str], more: dict[str, bytes] | None = None) -> BatchPlan:
    """A query that reads files, without a batch in flight, and a file sink with these entries in its log."""
    files = {"ck/metadata": b'{"id":"q"}', **(more or {})}
    for n in range(committed + 1):
        files[f"ck/offsets/{n}"] = HEAD + b'{"logOffset":%d}' % n
        files[f"ck/commits/{n}"] = b'v1\n{"nextBatchWatermarkMs":0}'
        files[f"ck/sources/0/{n}"] = b'v1\n{"path":"file:///data/in/part-%d","timestamp":1,"batchId":%d}' % (n, n)
    files |= {f"out/_spark_metadata/{name}": ENTRY % name.encode() for name in entries}
    files |= {f"out/part-{name}": b"1" for name in entries}
    return Memory("memory", (), files, "file:///data").plan()


@pytest.mark.parametrize(("age", "older"), [(-5, False), (0, False), (60_000, False), (60_001, True), (10**9, True)])
@pytest.mark.parametrize("name", ["2", "2.compact"])
def test_an_entry_that_is_older_than_its_plan_is_of_another_query(age: int, older: bool, name: str) -> None:
    """The clocks may be a minute apart; of a compact file nobody knows which batch a line is of."""
    when = 2_000_000_000
    files = {"ck/metadata": b'{"id":"q"}'}
    for n in range(3):
        files[f"ck/offsets/{n}"] = HEAD.replace(b":5,", b":%d," % when) + b'{"logOffset":%d}' % n
        files[f"ck/commits/{n}"] = b'v1\n{"nextBatchWatermarkMs":0}'
    for entry, time in (("0", when), ("1", when), (name, when - age)):
        line = b'v1\n{"path":"file:///out/part-%s","size":1,"modificationTime":%d,"action":"add"}'
        files[f"out/_spark_metadata/{entry}"] = line % (entry.encode(), time)
        files[f"out/part-{entry}"] = b"1"
    plan = Memory("memory", (), files, "file:///data").plan()
    found = [f for f in plan.findings if f.id == "sink-log-ahead"]
    assert [(f.subject, f.effect) for f in found] == [("out/_spark_metadata/2", "data-lost")] * (older and name == "2")


def without(*numbers: int, of: range, compacts: tuple[int, ...] = ()) -> list[str]:
    return [f"{n}.compact" if n in compacts else str(n) for n in of if n not in numbers]


@pytest.mark.parametrize(
    ("committed", "entries", "stops", "when"),
    [
        (5, without(3, of=range(6)), False, "A restart works until batch 9, then every start fails"),
        (8, without(3, of=range(9)), True, "The restart fails in batch 9"),
        (8, without(8, of=range(9)), True, "The restart fails in batch 9"),
        (24, without(23, of=range(25), compacts=(9, 19)), False, "until batch 29"),
        (28, without(23, of=range(29), compacts=(9, 19)), True, "The restart fails in batch 29"),
        (13, without(12, of=range(14), compacts=(4, 9)), True, "The restart fails in batch 14"),
        (13, without(12, of=range(14), compacts=(6,)), False, "until the sink compacts this log"),
        (13, without(12, of=range(14)), False, "until the sink compacts this log"),
    ],
)
def test_a_hole_stops_the_query_at_the_next_compaction(
    committed: int, entries: list[str], stops: bool, when: str
) -> None:
    plan = written(committed, entries)
    assert plan.fails is stops
    assert {finding.id for finding in plan.findings} == {"sink-log-behind"}
    assert all(when in finding.message for finding in plan.findings)


def test_a_folder_that_the_query_has_read_is_not_its_sink() -> None:
    assert said(written(5, [], {"in/part-0": b"{}"})) == []
    assert said(written(5, [], {"other/part-0": b"{}"})) == [("error", "sink-log-behind", "other/_spark_metadata")]


RESULTS = "out/part-00000-{}-c000.json"
OF_BATCH_3 = RESULTS.format("67f5eb1c-0baa-4604-b1b8-82f7b080c748")


def lost(*changes: tuple[str, bytes | None], at: int | None = None) -> list[Finding]:
    """The word count with result files changed, or gone for None: findings about them."""
    root = sample()
    for path, data in changes:
        if data is None:
            del root.files[path]
        else:
            root.files[path] = data
    return [finding for finding in root.plan(at=at).findings if "result" in finding.id]


def test_a_result_that_is_gone_is_missed() -> None:
    [finding] = lost((OF_BATCH_3, None))
    assert (finding.id, finding.severity, finding.effect) == ("missing-result-file", "error", "data-lost")
    assert f"1 result file of out is gone or has another size than in the sink's log: {OF_BATCH_3}." in finding.message
    assert "--at query/0=2" in finding.message, "batch 3 wrote it"


def test_a_result_that_was_cut_is_missed() -> None:
    size = len(sample().files[OF_BATCH_3])
    [finding] = lost((OF_BATCH_3, sample().files[OF_BATCH_3][:-1]))
    assert f"{OF_BATCH_3} ({size - 1} of {size} bytes)" in finding.message


@pytest.mark.parametrize(("at", "count"), [(2, 0), (3, 1)])
def test_going_back_writes_results_again(at: int, count: int) -> None:
    assert len(lost((OF_BATCH_3, None), at=at)) == count


@pytest.mark.parametrize("also", [None, "out/README.md"])
def test_a_copy_without_any_result_is_not_called_damaged(also: str | None) -> None:
    root = sample()
    for path in [path for path in root.files if path.startswith("out/part-")]:
        del root.files[path]
    if also:
        root.files[also] = b"the results were not copied"
    [finding] = [finding for finding in root.plan().findings if "result" in finding.id]
    assert (finding.id, finding.severity) == ("unchecked-results", "warning")
    root.write("out/_spark_metadata/0", b"v1")
    assert "result" not in "".join(finding.id for finding in root.plan(at=0).findings), "all are written again"


def test_a_compacted_entry_does_not_say_which_batch_wrote_a_result() -> None:
    line = b'{"path":"file:///out/part-%d","size":1,"action":"add"}\n'
    whole = b"v1\n" + b"".join(line % n for n in range(10))
    found = written(10, ["10"], {"out/_spark_metadata/9.compact": whole, "out/part-3": b"1"})
    [finding] = [finding for finding in found.findings if finding.id == "missing-result-file"]
    assert "9 result files of out are gone or have another size" in finding.message
    assert "--at" not in finding.message


LINE = '{"path":"file:///srv/out/%s","size":1,"action":"%s"}'


def log_of(*lines: tuple[str, str], version: str = "v1") -> bytes:
    return "\n".join([version, *(LINE % line for line in lines)]).encode()


def results_missed(root: Memory, at: int | None = None) -> list[str]:
    return [finding.message for finding in root.plan(at=at).findings if finding.id == "missing-result-file"]


def compacted_at_2() -> Memory:
    """The word count, whose sink's log has been compacted in batch 2 and lost its older entries."""
    root = sample()
    lines = [root.files[f"out/_spark_metadata/{n}"].removeprefix(b"v1\n") for n in range(3)]
    for n in range(3):
        root.remove(f"out/_spark_metadata/{n}")
    root.files["out/_spark_metadata/2.compact"] = b"\n".join([b"v1", *lines])
    return root


def result_of(batch: int) -> str:
    """The result file of a batch of the word count."""
    line = sample().files[f"out/_spark_metadata/{batch}"].split(b"\n")[1]
    name: str = json.loads(line)["path"].rpartition("/")[2]
    return f"out/{name}"


@pytest.mark.parametrize(("at", "count"), [(None, 1), (1, 0), (2, 1), (4, 1)])
def test_going_back_to_after_a_compaction_does_not_write_its_results_again(at: int | None, count: int) -> None:
    root = compacted_at_2()
    del root.files[result_of(1)]
    assert len(results_missed(root, at)) == count


def test_going_back_is_no_help_for_a_result_whose_batch_is_not_known() -> None:
    root = compacted_at_2()
    del root.files[result_of(1)], root.files[result_of(4)]
    [message] = results_missed(root)
    assert "2 result files" in message
    assert "--at" not in message


def test_a_file_of_the_same_name_elsewhere_is_no_result() -> None:
    root = sample()
    root.files["out/old/" + OF_BATCH_3.removeprefix("out/")] = root.files.pop(OF_BATCH_3)
    assert len(results_missed(root)) == 1


def test_a_file_that_the_log_deletes_is_not_looked_for() -> None:
    root = sample()
    gone, left = "p=a%20b/part-gone", "p=a%20b/part-left"
    root.write("out/_spark_metadata/4", log_of((gone, "add"), (left, "add")))
    root.write("out/_spark_metadata/5", log_of((gone, "delete")))
    root.files["out/p=a b/part-left"] = b"1"
    assert results_missed(root) == []
    root.write("out/_spark_metadata/5", log_of())
    [message] = results_missed(root)
    assert ": out/p=a b/part-gone. Readers" in message


def test_the_batch_in_flight_is_written_again_without_its_plan() -> None:
    """With the plan of batch 5 the sink would skip it again."""
    root = sample()
    root.remove("ck/commits/5")
    root.remove("ck/offsets/6")
    del root.files[result_of(5)]
    [message] = results_missed(root)
    assert "--at query/0=4 --at plan/0=4. " in message
    assert len(results_missed(root, at=4)) == 1
    plan = plan_of(SparkCheckpoint(root), at=4, drop_plans=True)
    assert said(plan) == []


def test_what_a_repair_writes_again_is_not_missed() -> None:
    root = sample()
    root.remove("ck/commits/5")
    root.remove("ck/offsets/6")
    root.remove("ck/state/0/0/6.delta")
    del root.files[result_of(5)]
    plan = root.plan()
    assert "out/_spark_metadata/5" in plan.remove
    assert said(plan) == [("error", "sink-log-ahead", "out/_spark_metadata/5")]


def uncommitted(
    *commits: int,
    entries: range = range(7),
    at: int | None = None,
    more: Mapping[str, bytes | None] = MappingProxyType({}),
) -> BatchPlan:
    """The word count, whose newest plan is 6, without some commits, and with these entries in its sink's log."""
    root = sample()
    for n in commits:
        root.remove(f"ck/commits/{n}")
    for n in range(6):
        if n not in entries:
            root.remove(f"out/_spark_metadata/{n}")
    for path, data in more.items():
        if data is None:
            root.remove(path)
        else:
            root.files[path] = data
    return root.plan(at=at)


@pytest.mark.parametrize("commits", [(5,), (4, 5), (3, 4, 5), (0, 1, 2, 3, 4, 5)])
def test_batches_that_sink_and_state_show_to_be_done_need_no_commit(commits: tuple[int, ...]) -> None:
    """Spark 4.3 runs batch 6 alone; the sink has the others, and batch 6 finds the state that it needs."""
    plan = uncommitted(*commits)
    assert (plan.committed, plan.planned, plan.fails, plan.skips) == (5, 6, False, False)
    assert said(plan) == [("warning", "missing-batch-file", f"ck/commits/{commits[0]}")]
    assert plan.proof.startswith("ck/commits/5 is missing, but the file sink's log has the batch, and the state")
    assert [(s.start, s.end) for s in plan.sources] == [({"logOffset": 5}, {"logOffset": 6})]
    assert plan == uncommitted(*commits, at=5), "and asked for"


@pytest.mark.parametrize(
    ("entries", "more"),
    [
        (range(5), {}),  # the sink does not have batch 5
        (range(1, 7), {}),  # a hole in its log: the next compaction fails
        (range(7), {"ck/state/0/1/6.delta": None}),
        (range(7), {"ck/state/0/1/6.delta": b"LZ4Block"}),
        (range(7), {"out/_spark_metadata/5": b"v1\n{"}),
        (range(7), {"more/_spark_metadata/5": b"v1\n"}),  # which of two is the query's is not known
    ],
)
def test_without_all_of_the_proof_a_batch_without_commit_is_lost(entries: range, more: dict[str, bytes | None]) -> None:
    plan = uncommitted(5, entries=entries, more=more)
    assert (plan.committed, plan.proof) == (4, "")
    assert plan.fails or plan.skips


def test_a_batch_in_flight_that_the_sink_has_goes_on_with_the_state_that_is_there() -> None:
    root = sample()
    for path in ("ck/commits/5", "ck/offsets/6"):
        root.remove(path)
    plan = root.plan()
    assert (plan.committed, plan.planned, plan.fails, plan.sink_has_planned) == (4, 5, False, True)
    [message] = [finding.message for finding in plan.findings if finding.id == "sink-log-ahead"]
    assert message.endswith("the sink has batch 5 and skips it. All that batch 6 needs of the state is there.")


ALL = (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("batch", ALL)
def test_batches_without_any_commit_are_done_at_any_moment_that_is_asked_about(batch: int) -> None:
    root = sample()
    for n in ALL:
        root.remove(f"ck/commits/{n}")
    plan = root.plan(as_of=batch_time(batch))
    assert (plan.committed, plan.fails, plan.skips) == (batch, False, False)
    assert [severity for severity, _, _ in said(plan)] in ([], ["warning"])


def test_without_any_commit_the_names_of_the_state_show_that_it_needs_the_ids_of_commits() -> None:
    """Spark 4.3, format 2, dropDuplicates: CANNOT_LOAD_STATE_STORE at every start."""
    plan = uncommitted(*ALL, more={"ck/state/0/0/6_5bc37eab-0c8b.changelog": b"?"})
    assert (plan.committed, plan.fails) == (-1, True)
    [finding] = [f for f in plan.findings if f.subject == "ck/commits/0"]
    assert (finding.severity, finding.effect) == ("error", "restart-fails")
    assert "with state checkpoint format 2 ck/commits/5 alone names the states that batch 6 needs" in finding.message


@pytest.mark.parametrize(
    ("gone", "more", "advice"),
    [
        ((3, 4, 5), {}, "lost. On a copy of the checkpoint remove the offsets above 3, all with their .crc"),
        ((3,), {}, "offsets above 3, and from the file sink's log the entries above 3, all with their .crc"),
        ((0,), {}, "The file sink's log does not have batch 0, so its results are lost."),
        ((), {"ck/state/0/1/6.delta": None}, "The file sink's log has batches 0 to 5, so leave the offsets as they"),
        ((), {"more/_spark_metadata/5": b"v1\n"}, "Check whether the sink has batches 0 to 5."),
        ((), {"out/_spark_metadata/3": b"v1\n{"}, "Check whether the sink has batches 0 to 5."),
    ],
)  # fmt: skip
def test_what_the_log_of_the_sink_has_decides_the_advice(
    gone: tuple[int, ...], more: dict[str, bytes | None], advice: str
) -> None:
    """Whoever removed the offsets of a batch that the sink has would lose what that batch reads afresh."""
    plan = uncommitted(*ALL, more={**more, **{f"out/_spark_metadata/{n}": None for n in gone}})
    [finding] = [f for f in plan.findings if (f.id, f.subject) == ("missing-batch-file", "ck/commits/0")]
    assert (finding.severity, plan.committed, plan.skips) == ("error", -1, True)
    assert advice in finding.message


def test_a_batch_whose_start_was_purged_cannot_run_again() -> None:
    """A restart reads the end of the batch before, so removing later plans would end in a failure."""
    gone = {"ck/offsets/0": None, "ck/offsets/1": None, "out/_spark_metadata/2": None}
    plan = uncommitted(*ALL, more=gone)
    [message] = [finding.message for finding in plan.findings if finding.subject == "ck/commits/2"]
    assert message.endswith("Nothing here says where batch 2 starts, because ck/offsets/1 is missing or damaged.")


def test_a_torn_commit_whose_batch_is_proved_can_be_removed() -> None:
    """A restart cannot read it; without it a restart runs batch 6 alone, and the sink has all others."""
    plan = uncommitted(more={"ck/commits/5": b"v1\n{", "ck/commits/.5.crc": None})
    assert (plan.committed, plan.planned, plan.fails, plan.remove) == (5, 6, True, ("ck/commits/5",))
    assert plan.proof.startswith("ck/commits/5 cannot be read, but the file sink's log has the batch")
    [message] = [finding.message for finding in plan.findings if finding.subject == "ck/commits/5"]
    assert "show that batch 5 is done: on a copy of the checkpoint remove this file and its .crc" in message
    mended = uncommitted(5)
    assert (mended.committed, mended.planned, mended.fails, mended.skips) == (5, 6, False, False)


def test_an_older_line_than_the_one_asked_for_is_not_called_as_asked_for() -> None:
    root = sample()
    root.remove("ck/commits/4")
    draft, _ = BatchLog(SparkCheckpoint(root)).line("recovery-line", Question(at=(("query/0", 4),)))
    assert draft.result.details["headline"].startswith("The line is batch 3, the newest before the one asked for.")


def test_a_young_checkpoint_beside_an_older_log_is_no_plain_start() -> None:
    """The sink skips every batch up to its newest, whoever wrote it: starting the query as it is loses that input."""
    root = sample()
    kept = {"ck/metadata", "ck/offsets/0", "ck/sources/0/0"}
    for path in [path for path in root.files if path.startswith("ck/") and path not in kept]:
        del root.files[path]
    draft, _ = BatchLog(SparkCheckpoint(root)).line("recovery-line", Question())
    answer = conclude(draft)
    [run] = answer.result.runs
    assert (answer.result.action, run.action, run.lost) == ("repair-first", "repair-first", None)
    [finding] = [f for f in answer.findings if f.id == "sink-log-ahead"]
    assert (finding.severity, finding.effect) == ("error", "data-lost")
    assert "has batches 1 to 5, too: the sink skips" in answer.result.details["headline"]

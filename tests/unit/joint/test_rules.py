"""What a restart does to an output, in the cases that users of tables have told of."""

from __future__ import annotations

from cklog.inputs.feeds import Output, Written
from cklog.inputs.sink_tables import SinkTable, Stamp, TableCommit, Writer
from cklog.joint.rules import EVERYTHING, Effect, effect_of
from cklog.sink_tables import outputs
from cklog.sink_tables.rules import rule_of

STREAM = Writer("query", "batch")


def table_output(table: SinkTable, writer: Writer) -> Output:
    return outputs.table_output(table, frozenset({writer}), rule_of("batch", "delta"), "batch")


def table(batches: int, remembers: int | None, undone: int = 0, expired: bool = False) -> SinkTable:
    """A table with a commit a batch, the last of them undone; it remembers a batch, or nothing."""
    commits = tuple(
        TableCommit(str(n), n, "append", 1, (Stamp(STREAM, n),), undone=n >= batches - undone) for n in range(batches)
    )
    known = {} if remembers is None else {STREAM: remembers}
    return SinkTable("orders", "delta", "main", commits, None, {}, known, expired=expired)


def test_a_topic_keeps_what_it_has_and_gets_it_again() -> None:
    assert effect_of(Output("t-0", end=9), Written(until=6)) == Effect(9, there=9, doubled=3)


def test_a_topic_of_which_nothing_is_known_orphans_nobody() -> None:
    assert effect_of(Output("t-0", None), Written(None)) == Effect(EVERYTHING, doubled=None)


def test_a_sink_that_skips_and_gets_the_same_again_stays_whole() -> None:
    assert effect_of(Output("f", 6, "skips", 6), Written(5, kept=6)) == Effect(6, there=6)


def test_a_sink_that_would_skip_other_contents_is_cut_first() -> None:
    assert effect_of(Output("f", 6, "skips", 6), Written(3)) == Effect(3, there=3, cut=3)


def test_a_sink_that_would_skip_other_contents_and_cannot_be_cut_refuses_the_point() -> None:
    effect = effect_of(Output("f", 6, "skips", 6), Written(3, can_cut=False))
    assert effect is not None
    assert "would be lost" in effect.refused


def test_a_delta_table_that_was_restored_still_remembers_the_batches_it_has_lost() -> None:
    output = table_output(table(6, remembers=5, undone=3), STREAM)
    assert (output.end, output.remembered) == (3, 6)
    assert effect_of(output, Written(6)) is not None
    refused = effect_of(output, Written(6))
    assert refused is not None
    assert "3 more is done" in refused.refused
    back = effect_of(output, Written(3))
    assert back is not None
    assert back.cut == 3  # else it drops batches 3 to 5 that are written again
    stuck = effect_of(output, Written(3, can_cut=False))
    assert stuck is not None
    assert stuck.refused


def test_a_table_that_forgot_its_writer_takes_everything_twice() -> None:
    assert table_output(table(6, remembers=None), STREAM).remembered == 0
    assert effect_of(table_output(table(6, remembers=None), STREAM), Written(4)) == Effect(6, there=6, doubled=2)


def test_a_table_whose_commits_are_gone_tells_nothing() -> None:
    assert effect_of(table_output(table(0, remembers=None, expired=True), STREAM), Written(4)) is None


def test_what_a_snapshot_brings_is_not_lost_though_the_table_lacks_it() -> None:
    assert effect_of(Output("t", 5, "skips", 5), Written(7, brings=5)) == Effect(7, there=5)


def test_what_is_written_over_stays_as_far_as_plans_are_kept() -> None:
    assert effect_of(Output("f", 9, "overwrites"), Written(4, kept=5)) == Effect(5, there=5, replaced=5)

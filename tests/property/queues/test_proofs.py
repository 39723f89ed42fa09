"""What a proof claims, held against every history that could have left the same queue.

A queue whose head is gone, or of which lines cannot be read, may have been written by many runs. All short runs of an
operator are made, damaged in every way, and put together by what is left of their queues. An eventual checkpoint is
made from what is left alone. So it is *proven*, or exact *after replay*, if recovering by it is exact for every run
that could have left this; and if it is not, it is *lost*. Both directions are held: nothing is claimed that one of the
runs refutes, and nothing is given up that all of them confirm. The same goes for the start of the replay: a later one
is refuted by some run, or was not needed.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cklog.render.formats import plain
from cklog.run import Options, open_run
from tests.oracles.operators import CountAggregate, Operator, Record, ReusingAggregate, StreamTuple, TimeAggregate, run
from tests.oracles.queue_damage import to_jsonl
from tests.oracles.recovery import Scenario


class Says(NamedTuple):
    """What records say beside what they must: "pos" their number, "N" how many windows are open after a result."""

    members: frozenset[str]

    def of(self, record: Record) -> Record:
        left_out = {"pos", "open_windows"} if record["type"] == "result" else {"pos"}
        left_out -= {{"pos": "pos", "N": "open_windows"}[one] for one in self.members}
        return {name: value for name, value in record.items() if name not in left_out}


SAYS = {" ".join(some) or "neither": Says(frozenset(some)) for some in (("pos", "N"), ("N",), ("pos",), ())}


class Damaged(NamedTuple):
    """A run, and what is left of its queue: rows from `head` on, of which `broken` cannot be read."""

    tuples: Sequence[StreamTuple]
    log: Sequence[Record]
    head: int
    broken: frozenset[int]

    @property
    def left(self) -> list[Record]:
        """The records that can be read."""
        return [r for at, r in enumerate(self.log) if at >= self.head and at not in self.broken]

    def key(self, says: Says) -> str:
        """What a reader can see."""
        return json.dumps(
            [None if at in self.broken else says.of(self.log[at]) for at in range(self.head, len(self.log))]
        )

    def data(self, says: Says) -> bytes:
        """The queue as bytes."""
        records = [says.of(r) for r in self.log[self.head :]]
        return to_jsonl(records, "pos" in says.members, broken=[at - self.head for at in self.broken])


def every_run(make: Callable[[], Operator], keys: str, steps: Sequence[int], most: int) -> Iterator[list[StreamTuple]]:
    """Every input of up to `most` tuples of some keys, with some steps in time."""
    for length in range(1, most + 1):
        for cells in itertools.product(itertools.product(keys, steps), repeat=length):
            times = itertools.accumulate(step for _, step in cells)
            yield [StreamTuple("", at, ts, key, 1) for at, ((key, _), ts) in enumerate(zip(cells, times, strict=True))]


def every_damage(log: Sequence[Record], widest: int) -> Iterator[tuple[int, frozenset[int]]]:
    """Every head that may be gone, with no line broken, or with one stretch of up to `widest` lines."""
    for head in range(len(log)):
        yield head, frozenset()
        for first in range(head, len(log) - 1):
            for width in range(1, min(widest, len(log) - 1 - first) + 1):
                yield head, frozenset(range(first, first + width))


def eventual_checkpoint(data: bytes, folder: Path) -> dict[str, Any]:
    place = folder / "outputs" / "op"
    place.mkdir(parents=True, exist_ok=True)
    (place / "part-0.jsonl").write_bytes(data)
    with open_run(str(folder), Options(engine="local")) as asked:
        found: dict[str, Any] = json.loads(json.dumps(plain(asked.eventual_checkpoint("op").result)))
    return found


def exact(scenario: Scenario, plan: dict[str, Any], one: Damaged) -> bool:
    """Whether recovering a run by a plan brings back its state; data that was lost before T stays lost."""
    believed = {**plan, "proof": "after-replay"}
    try:
        scenario.check(believed, one.tuples, one.left, several_holes=True)
    except AssertionError:
        return False
    return True


def by_hole(one: Damaged) -> int | None:
    """The input number of the last record before the first line that cannot be read; None: that is the first."""
    before = [r["input"] for at, r in enumerate(one.log) if one.head <= at < min(one.broken)]
    return before[-1] if before else None


def must_be_lost(one: Damaged, plan: dict[str, Any], confirmed: bool, says: Says) -> bool | None:
    """Whether an answer has to be "lost"; None: it may be.

    If some run refutes it. Or if the queue tells that there were records before its first, and the replay begins with
    that one: a tuple may have written records of which only the last are left. It may be if windows were open before
    the first record, and a line is broken: their results may be in it, and those of others.
    """
    first = one.left[0]
    opened = first["open_windows"] - {"open": 1, "result": -1}[first["type"]]
    trimmed = one.head not in one.broken and (opened > 0 or ("pos" in says.members and first["pos"] > 1))
    if not confirmed or (trimmed and (plan["T_input"] is None or plan["T_input"] <= first["input"])):
        return True
    return None if opened > 0 and one.broken else False


SCENARIOS = {
    "count": (Scenario(lambda: CountAggregate(2)), "ab", (1,), 4),
    "reusing": (Scenario(lambda: ReusingAggregate(2)), "ab", (1,), 4),
    "time": (Scenario(lambda: TimeAggregate(4)), "ab", (1, 3), 3),
}


def proof_of(scenario: Scenario, members: Sequence[Damaged], says: Says, folder: Path) -> str:
    """The proof for runs that left the same queue, held against all of them."""
    one = members[0]
    plan = eventual_checkpoint(one.data(says), folder)
    confirmed = all(exact(scenario, plan, each) for each in members)
    must = must_be_lost(one, plan, confirmed, says)
    assert must is None or (plan["proof"] == "lost") == must, (plan, one)
    starts = [w["input"] for w in plan["windows"]] or [one.log[-1]["input"]]
    if plan["proof"] == "after-replay":  # no later than what came before the hole, and no earlier than needed
        hole = by_hole(one)
        assert plan["T_input"] == (None if hole is None else min(*starts, hole)), (plan, one)
    elif plan["proof"] == "proven":
        allowed = {min(starts), min([*starts, by_hole(one) or 0])} if one.broken else {min(starts)}
        assert plan["T_input"] in allowed, (plan, one)
    return str(plan["proof"])


@pytest.mark.quarter
@pytest.mark.parametrize("says", SAYS.values(), ids=SAYS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_proof_is_what_every_run_that_left_the_same_queue_confirms(name: str, says: Says, tmp_path: Path) -> None:
    scenario, keys, steps, most = SCENARIOS[name]
    groups: dict[str, list[Damaged]] = defaultdict(list)
    for tuples in every_run(scenario.make, keys, steps, most):
        log = run(scenario.make, tuples).log
        for head, broken in every_damage(log, 2):
            one = Damaged(tuples, log, head, broken)
            if one.left:
                groups[one.key(says)].append(one)
    proofs = {proof_of(scenario, members, says, tmp_path) for members in groups.values()}
    assert proofs == {"proven", "after-replay", "lost"}


@pytest.mark.quarter
@pytest.mark.parametrize("says", SAYS.values(), ids=SAYS)
@pytest.mark.parametrize("name", ["count", "reusing"])
def test_a_window_that_opened_before_the_head_may_have_closed_in_a_hole(name: str, says: Says, tmp_path: Path) -> None:
    """E.g. a opens, its record is gone; b opens and closes; the result of a cannot be read; b opens again.

    What can be read begins and ends as if a replay from behind b's result were enough. It would not close a again.
    """
    scenario = SCENARIOS[name][0]
    groups: dict[str, list[Damaged]] = defaultdict(list)
    for tuples in every_run(scenario.make, "ab", (1,), 5):
        log = run(scenario.make, tuples).log
        for head, broken in itertools.product((1, 2), range(3, len(log) - 1)):
            one = Damaged(tuples, log, head, frozenset({broken}))
            groups[one.key(says)].append(one)
    assert "lost" in {proof_of(scenario, members, says, tmp_path) for members in groups.values()}

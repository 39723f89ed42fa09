"""What `retention` lets go of output queues, by brute force: cut there, and crash at every later record.

The operators, their recovery and its comparison with a run that never failed are those of `tests.oracles`: nothing of
it comes from the code under test. At each crash the whole queue and the cut one are asked for their eventual
checkpoint, and the operator is recovered with what the cut one says.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from cklog.errors import CklogError
from cklog.model.question import Question
from cklog.policies.check_records import Targets
from cklog.retention.plan import RetentionPlan
from cklog.retention.policy import RetentionPolicy
from cklog.run import open_run
from cklog.simulate.cec.tuples import Workload
from cklog.simulate.cec.write import write
from tests.conftest import SAMPLES
from tests.examples import examples
from tests.oracles.mixed_runs import RING, ROW, Execution
from tests.oracles.operators import Choose, Record, StreamTuple
from tests.oracles.queue_damage import to_jsonl
from tests.oracles.recovery import SCENARIOS, Scenario, choices, plan_by_definition

scenarios = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


def operator_of(scenario: Scenario) -> str:
    """The name of the operator: the receiver that its channels name, if they name one."""
    return scenario.make().channels[0].partition("->")[2].partition("/")[0] or "op"


def senders(scenario: Scenario) -> dict[str, str]:
    """By channel as the records name it: the operator whose queue feeds it."""
    return {name: name.partition("/")[0] or "up" for name in scenario.make().channels}


@contextmanager
def run_of(
    scenario: Scenario, log: Sequence[Record], tuples: Sequence[StreamTuple], below: Mapping[str, int] | None = None
) -> Iterator[str]:
    """A run folder: the queue of the operator and one for each input; `below`: without lower records, by operator."""
    cut = below or {}
    feeds = senders(scenario)
    with tempfile.TemporaryDirectory() as folder:
        own = operator_of(scenario)
        channels = [{"channel": f"{name}/0->{own}/0"} for name in sorted(set(feeds.values()))]
        operators = [{"name": name, "kind": "source"} for name in sorted(set(feeds.values()))] + [{"name": own}]
        (Path(folder) / "job.json").write_text(json.dumps({"operators": operators, "channels": channels}))
        queues: dict[str, list[Record]] = {own: list(log)}
        for t in tuples:  # a number that the operator never sees is a record all the same, as of a filter that drops it
            sent = queues.setdefault(feeds[t.channel], [])
            row = {"type": "emit", "ts": t.ts, "open_windows": 0, "window": None, "state": None}
            sent += [row | {"input": number, "pos": number} for number in range(len(sent), t.number + 1)]
        for name, records in queues.items():
            place = Path(folder) / "outputs" / name
            place.mkdir(parents=True)
            (place / "part-0.jsonl").write_bytes(to_jsonl([r for r in records if r["pos"] >= cut.get(name, 0)]))
        yield folder


def allowed(folder: str) -> dict[str, int | None]:
    """By operator: below which record its queue may be cut."""
    with open_run(folder) as run:
        plan = run.retention(RetentionPolicy()).result
    return {trim.channel.rpartition("/")[0]: trim.below for trim in plan.trimming if trim.log == "queue"}


def told(folder: str, operator: str) -> dict[str, Any]:
    """The eventual checkpoint of an operator as cklog gives it, but for places in files, which a cut moves."""
    with open_run(folder) as run:
        result = asdict(run.eventual_checkpoint(operator).result)
    for offset in result["replay"]["upstream"]:
        del offset["offset"], offset["path"]
    return result


@pytest.mark.quarter
@scenarios
@settings(max_examples=examples(8))
@given(choices)
def test_no_later_crash_misses_what_may_go(scenario: Scenario, choose: Choose) -> None:
    tuples, log = scenario.generate(choose)
    if len(log) < 2:
        return
    now, own = 1 + choose(len(log) - 1), operator_of(scenario)
    with run_of(scenario, log[:now], tuples) as folder:
        below = {name: number for name, number in allowed(folder).items() if number is not None}
    assert own in below  # an intact queue is proven, and so it may be cut
    for crash in range(now, len(log) + 1):
        with run_of(scenario, log[:crash], tuples) as folder:
            whole = told(folder, own)
        with run_of(scenario, log[:crash], tuples, below) as folder:
            plan = told(folder, own)
        assert plan == whole
        scenario.check(plan, tuples, log[:crash], choose)
        for channel, name in senders(scenario).items():  # the replay finds all that it asks for
            start = plan["T_input"]
            start = start.get(channel, 0) if isinstance(start, dict) else start
            assert max(start, 0) >= below.get(name, 0)


@pytest.mark.quarter
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "flat-map"])
def test_one_record_more_is_too_many(name: str) -> None:
    """Not at every crash: windows may have closed since. But there are some where the state cannot be completed.

    The first record that stays is a witness: without it, cklog cannot tell that nothing of T's tuple is missing. The
    one after it is needed by the definition itself: without it the checkpoint of some crashes is another one.
    """
    scenario, witness, state, tuple_ = SCENARIOS[name], 0, 0, 0
    own = operator_of(scenario)
    for seed in range(30):
        choose = random.Random(seed).randrange
        tuples, log = scenario.generate(choose)
        if len(log) < 3:
            continue
        now = 1 + choose(len(log) - 1)
        with run_of(scenario, log[:now], tuples) as folder:
            may = allowed(folder)
        cut = may[own]
        assert cut is not None
        with run_of(scenario, log[:now], tuples) as folder:
            whole = told(folder, own)
        if cut > 0:  # something is cut
            with run_of(scenario, log[:now], tuples, {own: cut + 1}) as folder:
                witness += told(folder, own)["proof"] == "lost" != whole["proof"]
            kept = [r for r in log[:now] if r["pos"] >= cut + 2]
            state += plan_by_definition(kept)["windows"] != plan_by_definition(log[:now])["windows"]
        for sender in set(senders(scenario).values()):
            number = may.get(sender)  # None: it has sent nothing, and has no queue
            if number:
                with run_of(scenario, log[:now], tuples, {sender: number + 1}) as folder:
                    tuple_ += told(folder, own)["proof"] == "lost" != whole["proof"]
    assert witness > 0
    assert state > 0
    assert tuple_ > 0


@scenarios
@settings(max_examples=examples(8))
@given(choices)
def test_a_damaged_record_lets_nothing_more_go(scenario: Scenario, choose: Choose) -> None:
    """Neither of the queue nor of what feeds it, whichever record of the extent it was."""
    tuples, log = scenario.generate(choose)
    if len(log) < 3:
        return
    with run_of(scenario, log, tuples) as folder:
        whole = allowed(folder)
        spoilt = choose(len(log))
        (Path(folder) / "outputs" / operator_of(scenario) / "part-0.jsonl").write_bytes(to_jsonl(log, broken=[spoilt]))
        found = allowed(folder)
    for name, number in found.items():
        assert number is None or number <= (whole[name] or 0)


def plans(folder: Path) -> RetentionPlan:
    with open_run(str(folder)) as run:
        return run.retention(RetentionPolicy()).result


def lines_before(path: Path, tuples: int) -> bytes:
    """A queue as it was when `tuples` tuples had been taken."""
    lines = path.read_bytes().splitlines(keepends=True)
    return b"".join(line for line in lines if json.loads(line)["input"] < tuples)


def answers(folder: Path) -> tuple[Any, Any]:
    """The eventual checkpoint of the aggregate, and the whole line, without places in files."""
    with open_run(str(folder)) as run:
        checkpoint = run.eventual_checkpoint("agg1").result
        line = run.recovery_line(Question(everything=True)).result
    replayed = (checkpoint.replay.from_input, checkpoint.replay.tuples, checkpoint.replay.bytes)
    ranges = [(r.channel, r.replay_from, r.replay_to, r.messages, r.retained) for r in line.channels]
    return (checkpoint.windows, checkpoint.closed, checkpoint.proof, replayed), (ranges, line.consistent)


@pytest.mark.quarter
@pytest.mark.parametrize("seed", range(4))
def test_a_simulated_run_cut_at_its_files_and_bytes_recovers_as_the_whole_one(seed: int, tmp_path: Path) -> None:
    """The filter's queue and the aggregate's in parts: parts that may go are deleted, the rest is cut at its byte."""
    rng = random.Random(seed)
    workload = Workload(keys=30, count=4, rate=1000, tuples=2000, seed=seed)
    policy = Targets(q_windows=rng.choice([2, 4]), interval_ms=1, cost_us=100)
    write(tmp_path / "run", workload, policy, upstream=True, part_bytes=4096)
    now = rng.randrange(600, 1400)
    crashes = [now, *(rng.randrange(now, 2000) for _ in range(4)), 2000]
    present = tmp_path / "now"
    _as_of(tmp_path / "run", present, now)
    plan = plans(present)
    gone = {row.path for row in plan.rows if row.fate == "OBSOLETE"}
    cuts = [trim for trim in plan.trimming if trim.log == "queue"]
    assert len(gone) > 5
    assert {trim.channel for trim in cuts} == {"agg1/0", "filter1/0"}
    for trim in cuts:  # the bytes below are those of the parts that go and of the part that is cut
        path, _, offset = (trim.place or "").rpartition(":")
        size = sum((present / p).stat().st_size for p in gone if p.startswith(f"outputs/{trim.channel[:-2]}/"))
        assert trim.bytes == size + int(offset)
        assert json.loads((present / path).read_bytes()[int(offset) :].splitlines()[0])["pos"] == trim.below
    for number, crash in enumerate(crashes):
        whole, cut = tmp_path / f"whole-{number}", tmp_path / f"cut-{number}"
        _as_of(tmp_path / "run", whole, crash)
        _as_of(tmp_path / "run", cut, crash)
        for path in gone:
            (cut / path).unlink()
        for trim in cuts:
            path, _, offset = (trim.place or "").rpartition(":")
            (cut / path).write_bytes((cut / path).read_bytes()[int(offset) :])
        assert answers(cut) == answers(whole)


def _as_of(source: Path, target: Path, tuples: int) -> None:
    """Copy a run as it was when `tuples` tuples had been taken."""
    shutil.copytree(source, target)
    for path in sorted((target / "outputs").glob("*/*.jsonl")):
        path.write_bytes(lines_before(path, tuples))
        if not path.stat().st_size:
            path.unlink()


# --- beside operators that checkpoint on their own


def mixed_run(folder: Path, run: Execution, channels: Sequence[str], below: int) -> str:
    """A run of `tests.oracles.mixed_runs`: u and d have checkpoints, e the queue, without records `below`."""
    for place, rows in (("checkpoints", run.checkpoints), ("outputs/e", [r for r in run.queue if r["pos"] >= below])):
        (folder / place).mkdir(parents=True)
        (folder / place / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = [{"channel": name} for name in channels]
    (folder / "job.json").write_text(json.dumps({"channels": names, "operators": [{"name": name} for name in "ude"]}))
    return str(folder)


def line_told(folder: str, *failed: str) -> Any:
    with open_run(folder) as run:
        line = run.recovery_line(Question(failed=failed, everything=not failed)).result
    entries = [(e.operator, e.checkpoint, e.time, e.rolled_back, e.state) for e in line.line]
    ranges = [(r.channel, r.replay_from, r.replay_to, r.messages, r.retained) for r in line.channels]
    return entries, ranges, line.details["eventual"]


@pytest.mark.quarter
@pytest.mark.parametrize("channels", [ROW, RING], ids=["row", "ring"])
def test_beside_checkpoints_no_later_line_misses_what_may_go(channels: tuple[str, ...], tmp_path: Path) -> None:
    """The same run, longer: of every subtask that may fail, and of all at once, the line is that of the whole queue."""
    cut = beyond = 0
    for seed in range(14):
        steps = 25 + seed
        run = Execution(random.Random(seed), steps, channels)
        if not run.queue or {r["operator"] for r in run.checkpoints} != {"u", "d"}:
            continue
        below = allowed(mixed_run(tmp_path / f"{seed}-now", run, channels, 0))["e"] or 0
        cut += below > 0
        for more in (0, 7, 25):
            later = Execution(random.Random(seed), steps + more, channels)
            assert later.queue[: len(run.queue)] == run.queue
            whole = mixed_run(tmp_path / f"{seed}-{more}-whole", later, channels, 0)
            rest = mixed_run(tmp_path / f"{seed}-{more}-cut", later, channels, below)
            for failed in ((), ("u",), ("d",), ("e",)):
                assert line_told(rest, *failed) == line_told(whole, *failed)
        if 0 < below < len(run.queue) - 2:
            over = mixed_run(tmp_path / f"{seed}-over", run, channels, below + 2)
            beyond += line_told(over) != line_told(str(tmp_path / f"{seed}-now"))
    assert cut > 3
    assert beyond > 0  # two records more, and the line of some failure is another one


@pytest.mark.parametrize("sample", ["cec-aggregate", "cec-aggregate-kafka", "cec-aggregate-parquet"])
def test_no_damage_to_any_file_makes_more_deletable(sample: str, tmp_path: Path) -> None:
    """Cut, flipped, blanked, shortened, emptied or gone, the manifest too: never more than of the whole run."""
    whole = plans(SAMPLES / sample)
    most = {trim.channel: trim.below for trim in whole.trimming}
    free = {row.path for row in whole.rows if row.fate == "OBSOLETE"}
    answered = 0
    for seed in range(24):
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        shutil.copytree(SAMPLES / sample, folder)
        path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "expected.json"))
        _damage_file(path, rng)
        try:
            plan = plans(folder)
        except CklogError:
            continue
        answered += 1
        for trim in plan.trimming:
            assert trim.below is None or trim.below <= (most[trim.channel] or 0)
        assert {row.path for row in plan.rows if row.fate == "OBSOLETE"} <= free
    assert answered > 8


def _damage_file(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    at, what = rng.randrange(max(len(data), 1)), rng.randrange(6)
    if what == 5 or not data:
        path.unlink()
        return
    if what == 0:
        del data[at:]
    elif what == 1:
        data[at] ^= 1 << rng.randrange(8)
    elif what == 2:
        data[at : at + 200] = bytes(200)
    elif what == 3:
        del data[at : at + rng.randrange(1, 3000)]
    else:
        data.clear()
    path.write_bytes(bytes(data))

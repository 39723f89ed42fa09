"""`rounds` against a brute force over the raw events of random token histories, in both variants."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cklog.errors import CorruptInput, NotFound
from cklog.model.question import Question
from cklog.model.schemas import OF_SUBTASKS, ON_CHANNELS, SYSTEM
from cklog.model.verdict import Answer
from cklog.render.formats import render
from cklog.rounds.answer import RoundsAnswer, RoundsQuestion
from cklog.run import Options, open_run
from tests.examples import examples
from tests.oracles.token_runs import (
    Application,
    Event,
    Record,
    application,
    begun_at,
    count,
    name,
    records_of,
    write,
)

runs = st.builds(application, st.randoms(use_true_random=False), st.booleans())


def asked(run: Application, records: dict[str, list[Record]]) -> tuple[Answer[Any] | None, tuple[int | None, ...]]:
    """The answer, None if there is no round at all, and the checkpoints of `recovery-line` on the same folder."""
    with tempfile.TemporaryDirectory() as folder, open_run(str(write(Path(folder), run, records)), Options()) as opened:
        line = opened.recovery_line(Question()).result.line
        try:
            return opened.rounds(RoundsQuestion()), tuple(entry.checkpoint for entry in line)
        except NotFound:
            return None, tuple(entry.checkpoint for entry in line)


def newest_complete(run: Application) -> int:
    """The last round that every HAU has stored, 0 for none."""
    stored = [(e.hau, e.round) for e in run.events if e.kind == "stored"]
    last = max((r for _, r in stored), default=0)
    return max((r for r in range(1, last + 1) if all((i, r) in stored for i in range(run.haus))), default=0)


def at_checkpoint(run: Application, hau: int, round: int) -> list[Event]:
    """What had happened when an HAU began its checkpoint of a round."""
    return run.events[: begun_at(run, hau, round)] if round else []


@given(runs)
def test_agrees_with_the_events_themselves(run: Application) -> None:
    answer, line = asked(run, records_of(run))
    told = [e.round for e in run.events if e.round > 0]
    if not told:
        assert answer is None
        return
    assert answer is not None
    found: RoundsAnswer = answer.result
    best = newest_complete(run)
    assert (found.round or 0, answer.exit_code) == (best, 0 if best else 4)
    assert tuple(entry.checkpoint for entry in found.line) == line == (best,) * run.haus
    _check_tokens(run, found, max(told))
    _check_tuples(run, found, best)


@given(runs)
def test_the_newest_complete_round_and_no_other_is_proved_maximal(run: Application) -> None:
    """A round that only some HAUs have is nothing to restart from, though what they have of it may be consistent."""
    best = newest_complete(run)
    if not best:
        return
    with tempfile.TemporaryDirectory() as folder:
        written = str(write(Path(folder), run, records_of(run)))
        with open_run(written, Options()) as opened:
            for round in {1, best}:
                line = {f"hau{hau}/0": round for hau in range(run.haus)}
                checks = opened.verify(line, True, Question()).result.checks
                held = {check.check: check.holds for check in checks}
                assert (held["consistent"], held["maximal"]) == (True, round == best)


def _check_tokens(run: Application, found: RoundsAnswer, newest: int) -> None:
    happened = {(e.kind, e.hau, e.channel, e.round) for e in run.events}
    lacking = {i for i in range(run.haus) if ("stored", i, (-1, -1), newest) not in happened}
    missing = {c for c in run.channels if c[1] in lacking and ("received", -1, c, newest) not in happened}
    row = found.rounds[-1]
    assert found.tokens == any(e.kind in ("sent", "received") for e in run.events)
    if not found.tokens:  # then only checkpoints tell
        return
    assert (row.round, row.tokens_missing, row.checkpoints) == (newest, len(missing), run.haus - len(lacking))
    hangs = {(h.operator, h.channel) for h in found.hangs}
    waiting = {(f"hau{c[1]}", name(c)) for c in missing}
    idle = {(f"hau{i}", None) for i in lacking if not any(c[1] == i for c in missing)}
    assert hangs == waiting | idle
    for h in found.hangs:
        sent = any(kind == "sent" and r == newest and name(c) == h.channel for kind, _, c, r in happened)
        assert (h.why == "token-under-way") == sent


def _check_tuples(run: Application, found: RoundsAnswer, best: int) -> None:
    preserved = {(t.channel, t.from_, t.to, t.there) for t in found.preserved}
    saved = {(t.channel, t.from_, t.to, t.there) for t in found.saved}
    sent = {c: count(at_checkpoint(run, c[0], best), "send", c) for c in run.channels}
    got = {c: count(at_checkpoint(run, c[1], best), "receive", c) for c in run.channels}
    ends = {c: count(run.events, "preserve", c) for c in run.channels}
    assert preserved == {(name(c), sent[c], ends[c], True) for c in run.channels if c[0] in run.sources}
    assert saved == {(name(c), got[c], sent[c], True) for c in run.channels if got[c] < sent[c]}
    if found.saved:
        assert found.variant == "MS-src+ap"
    if not run.parallel:
        assert found.variant in ("MS-src", None)


@given(runs, st.data())
def test_a_lost_record_never_makes_a_round_newer(run: Application, data: st.DataObject) -> None:
    records = records_of(run)
    whole, _ = asked(run, records)
    rows = [(place, i) for place, kept in records.items() for i in range(len(kept))]
    if whole is None or not rows:
        return
    place, i = data.draw(st.sampled_from(rows))
    records[place] = records[place][:i] + records[place][i + 1 :]
    answer, line = asked(run, records)
    if answer is None:
        return
    found: RoundsAnswer = answer.result
    assert (found.round or 0) <= (whole.result.round or 0)
    assert tuple(entry.checkpoint for entry in found.line) == line
    complete = {r.round for r in whole.result.rounds if r.state != "incomplete"}
    assert {r.round for r in found.rounds if r.state != "incomplete"} <= complete
    if place != "checkpoints":
        assert found.round == whole.result.round
        before = {t.channel: t.there for t in whole.result.saved}
        assert not any(t.there and not before[t.channel] for t in found.saved)
        before = {t.channel: t.there for t in whole.result.preserved}
        assert not any(t.there and not before[t.channel] for t in found.preserved)


SAMPLE = Path("sample_logs/token-rounds")
FILES = ["job.json", *(f"{place}/part-00000.jsonl" for place in ("checkpoints", "system", "channels"))]


@settings(max_examples=examples(60))
@given(st.sampled_from(FILES), st.floats(0, 1), st.integers(1, 255), st.booleans())
@example("checkpoints/part-00000.jsonl", 0.03125, 1, True)  # within the first record
@example("job.json", 1.0, 1, True)  # the last newline, on which nothing rests
def test_a_damaged_byte_never_makes_a_round_newer(file: str, where: float, flip: int, cut: bool) -> None:
    """Any byte of the sample changed, or all from it on gone: told, or nothing changes; refused without a record."""
    with open_run(str(SAMPLE), Options()) as opened:
        whole = opened.rounds(RoundsQuestion())
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(SAMPLE, Path(folder) / "run")
        data = bytearray((copy / file).read_bytes())
        at = min(int(where * len(data)), len(data) - 1)
        data[at] ^= flip
        (copy / file).write_bytes(data[:at] if cut else data)
        try:
            with open_run(str(copy), Options()) as opened:
                answer = opened.rounds(RoundsQuestion())
        except CorruptInput:
            assert cut
            assert file.startswith("checkpoints")
            assert b"\n" not in data[:at]
            return
    assert (answer.result.round or 0) <= 3
    assert answer.findings or answer.result == whole.result


values = (
    st.none() | st.integers(-3, 70) | st.sampled_from([2**63 - 1, 2**63, 1e300, True, "", "HAU1/0->HAU2/0", "x", []])
)
events = st.sampled_from([*ON_CHANNELS, *OF_SUBTASKS, "boot"])


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(events, st.dictionaries(st.sampled_from(SYSTEM.names[1:]), values)), max_size=6))
def test_any_system_log_is_answered(told: list[tuple[str, dict[str, object]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(SAMPLE, Path(folder) / "run")
        lines = [json.dumps({**members, "event": event}) for event, members in told]
        (copy / "system" / "more.jsonl").write_text("".join(f"{line}\n" for line in lines))
        with open_run(str(copy), Options()) as opened:
            answer = opened.rounds(RoundsQuestion(failed_nodes=("n2",)))
    assert answer.result.round in (None, 3)
    for form in ("json", "table"):
        assert render(answer, form)


@given(st.integers(0, 10**6), st.booleans())
def test_runs_of_the_generator_have_rounds(seed: int, parallel: bool) -> None:
    """The histories above are not trivial: three in four and more have a complete round within their steps."""
    drawn = [newest_complete(application(Random(seed + k), parallel, 200)) for k in range(20)]
    assert sum(map(bool, drawn)) >= 5

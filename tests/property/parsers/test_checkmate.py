"""The same history as a dump of the testbed and as native records: one line, one replay."""

from __future__ import annotations

import json
import tempfile
from itertools import product
from pathlib import Path

from hypothesis import assume, given, settings

from cklog.model.question import Question
from cklog.run import Options, Run, open_run
from tests.builders.checkmate import put_log, put_snapshot
from tests.examples import examples
from tests.oracles import lines as oracle

Told = tuple[dict[str, int], dict[str, tuple[int, int, int | None, bool | None]]]


class Writer:
    """A dump of an execution: every operator has a partition on every worker, used or not."""

    def __init__(self, execution: oracle.Execution, folder: Path) -> None:
        self.execution, self.folder = execution, folder
        ends = [s.split("/") for s in execution.subtasks]
        self.operators = sorted({operator for operator, _ in ends})
        self.workers = range(1 + max(int(number) for _, number in ends))
        self.names: dict[str, str] = {}
        for a, b in product(self.operators, repeat=2):
            for i, j in product(self.workers, repeat=2):
                self.names[f"{a}/{i}->{b}/{j}"] = f"{a}_{b}_{i * len(self.workers) + j}"

    def write(self) -> None:
        sent = dict.fromkeys(self.names, -1)
        received: dict[str, dict[str, int]] = {s: {} for s in self.execution.subtasks}
        for number, (kind, subtask, channel, seq) in enumerate(self.execution.events):
            if kind == "send":
                sent[channel] = max(sent[channel], seq)
            elif kind == "recv":
                got = received[subtask]
                got[self.names[channel]] = max(got.get(self.names[channel], -1), seq)
            else:
                operator, worker = subtask.split("/")
                mine = {self.names[c]: n for c, n in sent.items() if c.startswith(f"{subtask}->")}
                stamp = oracle.EPOCH + 10 * number
                put_snapshot(self.folder, int(worker), operator, stamp, mine, received[subtask], state={"n": number})
                received[subtask] = {}
        for channel, name in self.names.items():
            sender = int(channel.partition("->")[0].split("/")[1])
            put_log(self.folder, sender, name, [0] * (sent[channel] + 1))


def write_native(execution: oracle.Execution, folder: Path) -> None:
    """The same as a native run folder."""
    for place, records in (
        ("checkpoints", oracle.checkpoint_records(execution)),
        ("channels", oracle.message_records(execution)),
    ):
        (folder / place).mkdir(parents=True)
        (folder / place / "all.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    channels = [{"channel": name} for name in execution.channels]
    names: dict[str, int] = {}
    for operator, number in (s.split("/") for s in execution.subtasks):
        names[operator] = max(names.get(operator, 0), int(number) + 1)
    operators = [{"name": name, "parallelism": n} for name, n in names.items()]
    (folder / "job.json").write_text(json.dumps({"operators": operators, "channels": channels}))


def told(log: Run, execution: oracle.Execution) -> Told:
    """The line, and what is replayed, of the subtasks and channels of the execution."""
    result = log.recovery_line(Question()).result
    line = {f"{e.operator}/{e.subtask}": e.checkpoint or 0 for e in result.line}
    replay = {c.channel: (c.replay_from, c.replay_to, c.messages, c.retained) for c in result.channels}
    return {s: line[s] for s in execution.subtasks}, {c: replay[c] for c in execution.channels if c in replay}


@settings(max_examples=examples(150))
@given(oracle.executions())
def test_a_dump_and_native_records_give_one_answer(execution: oracle.Execution) -> None:
    assume(not any("#" in channel for channel in execution.channels))
    with tempfile.TemporaryDirectory() as made:
        dump, native = Path(made) / "dump", Path(made) / "native"
        Writer(execution, dump).write()
        write_native(execution, native)
        by_dump = open_run(str(dump), Options(source="checkmate"))
        by_records = open_run(str(native), Options(source="native"))
        assert told(by_dump, execution) == told(by_records, execution)
        expected = oracle.latest_line(execution, frozenset(execution.subtasks))
        assert told(by_dump, execution)[0] == expected

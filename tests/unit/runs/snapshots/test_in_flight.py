"""Bytes in flight of an unaligned checkpoint: per channel, and their sums per operator and direction."""

from __future__ import annotations

from pathlib import Path

from tests.builders import flink as fb
from tests.builders.flink_folders import OLD
from tests.reading.flink_folders import asked

INPUT, OUTPUT = 1, 2


def test_bytes_in_flight_are_summed_per_operator_and_direction(tmp_path: Path) -> None:
    """(operator, subtask, direction, gate, channel): bytes; a channel without any is not told."""
    written = {
        ("join", 0, "input", 0, 0): 10,
        ("join", 0, "input", 0, 1): 200,
        ("join", 1, "input", 1, 0): 3000,
        ("join", 1, "output", 0, 0): 0,
        ("count", 0, "input", 0, 0): 40_000,
        ("count", 0, "output", 0, 2): 500_000,
    }
    operators = []
    for name in ("join", "count"):
        subtasks = []
        for index in range(2):
            made: dict[str, list[fb.Built]] = {"input": [], "output": []}
            for (of, subtask, direction, gate, number), size in written.items():
                if (of, subtask) == (name, index):
                    kind = INPUT if direction == "input" else OUTPUT
                    made[direction].append(fb.channel(kind, gate, number, size, fb.inline(b"x" * 9)))
            subtasks.append(fb.subtask(6, index, inputs=made["input"], outputs=made["output"]))
        operators.append(fb.operator(6, subtasks, name=name, uid=name))
    folder = tmp_path / OLD / "chk-1"
    folder.mkdir(parents=True)
    (folder / "_metadata").write_bytes(fb.metadata(6, operators, checkpoint=1).data)
    details = asked("recovery-line", tmp_path)["result"]["details"]
    names = ("operator", "subtask", "direction", "gate", "channel")
    assert {tuple(row[name] for name in names): row["bytes"] for row in details["in_flight_channels"]} == {
        key: size for key, size in written.items() if size
    }
    sums: dict[tuple[str, str], list[int]] = {}
    for (operator, _, direction, *_), size in written.items():
        if size:
            sums.setdefault((operator, direction), []).append(size)
    assert [(r["operator"], r["direction"], r["channels"], r["bytes"]) for r in details["in_flight"]] == [
        (*key, len(sizes), sum(sizes)) for key, sizes in sorted(sums.items())
    ]

"""Which files are an operator's output queue, whose it is, and what an answer says was read of a run folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cklog.model.names import Subtask
from cklog.parsers.native.output_queues import is_segment, owner_of
from cklog.parsers.native.parser import Native
from cklog.storage import Root
from tests.builders.native import checkpoint, write
from tests.program import cklog

SEGMENT = f"{0:020}.log"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (SEGMENT, True),
        (f"{7:020}.log", True),
        ("0.log", False),
        ("controller.log", False),
        (f"{0:020}.txt", False),
        (f"{0:019}x.log", False),
        (f"{0:016}.parquet", False),
    ],
)
def test_a_segment_is_named_by_twenty_digits(name: str, is_one: bool) -> None:
    assert is_segment(f"outputs/agg/out-0/{name}") == is_one


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("outputs/agg/part.jsonl", Subtask("agg", 0)),
        ("outputs/agg/2/part.jsonl", Subtask("agg", 2)),
        ("outputs/agg/999999999/part.jsonl", Subtask("agg", 999_999_999)),
        ("outputs/agg/1000000000/part.jsonl", Subtask("agg", 0)),  # no subtask has that many beside it
        (f"outputs/agg/out-2/{SEGMENT}", Subtask("agg", 2)),
        (f"outputs/agg/{SEGMENT}", None),
        ("outputs/part.jsonl", None),
        ("outputs", None),
        ("channels/agg/part.jsonl", None),
    ],
)
def test_a_file_below_outputs_is_of_the_subtask_that_its_folders_name(path: str, owner: Subtask | None) -> None:
    assert owner_of(path) == owner


def test_what_was_read_is_told_with_its_bytes_and_records(tmp_path: Path) -> None:
    """The manifest stands with the checkpoints, and nowhere else."""
    (tmp_path / "job.json").write_text('{"job": "j", "operators": [{"name": "a"}]}')
    sizes = [write(tmp_path, "checkpoints", [checkpoint("a/0", n)], f"{n}.jsonl").stat().st_size for n in (1, 2)]
    record = {"type": "open", "window": "w", "ts": 1, "open_windows": 1, "state": {}, "pos": 0}
    queued = [write(tmp_path, "outputs/a", [record] * n, f"{n}.jsonl").stat().st_size for n in (1, 2, 3)]
    parser = Native(Root(str(tmp_path)))
    told = parser.inputs("checkpoints", {"checkpoints/1.jsonl": 1, "checkpoints/2.jsonl": 1})
    manifest = (tmp_path / "job.json").stat().st_size
    assert [(one.path, one.bytes, one.records) for one in told] == [
        ("job.json", manifest, 1),
        ("checkpoints/", sum(sizes), 2),
    ]
    assert [one.path for one in parser.inputs("channels", {})] == []
    (queue,) = parser.queues().values()
    assert [(one.path, one.bytes) for one in queue.inputs()] == [("outputs/a/", sum(queued))]


def test_a_file_of_a_queue_that_holds_nothing_is_a_gap(tmp_path: Path) -> None:
    write(tmp_path, "outputs/a", [], "0.jsonl")
    (queue,) = Native(Root(str(tmp_path))).queues().values()
    (split,) = queue.splits(1 << 20)
    assert (split.reader, split.size) == ("cklog.parsers.native.output_queues:refused", 0)


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ({"operators": [{"name": "\ud800"}]}, "half a surrogate pair"),
        ({"operators": [{"name": "agg\ud800"}]}, "half a surrogate pair"),
        ({"channels": [{"channel": 5}]}, "channels[0]: channel is no text"),
        ({"channels": [{"channel": "a/0->b/0", "first_retained": -1}]}, "channels[0]: first_retained is not a count"),
        ({"channels": [{"channel": "a/0->b/0", "first_retained": "2"}]}, "channels[0]: first_retained is not a count"),
    ],
)
def test_a_manifest_that_cannot_be_is_told(manifest: dict[str, object], why: str, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps(manifest))
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1)])
    ended = cklog("recovery-line", tmp_path, "--json")
    told = [f["message"] for f in json.loads(ended.out)["findings"] if f["id"] == "bad-manifest"]
    assert len(told) == 1
    assert why in told[0]

"""The native run folder: what is a record, what is damage, and what is lost by it (nothing that is intact)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.errors import CorruptInput
from cklog.model.findings import Finding
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.parsers.codecs.hadoop_crc import encode
from cklog.run import Options, open_run
from tests.builders.native import checkpoint, line, write, zstd

A_TO_B = "a/0->b/0"


def pair(sent: int, received: int) -> list[dict[str, Any]]:
    """One checkpoint of the sender a/0 and one of the receiver b/0."""
    return [checkpoint("a/0", 1, sent={A_TO_B: sent}), checkpoint("b/0", 1, received={A_TO_B: received})]


def messages(*numbers: int) -> list[dict[str, Any]]:
    return [{"channel": A_TO_B, "seq": n, "time": n, "bytes": 10} for n in numbers]


def ask(folder: Path, question: Question = Question(), **options: Any) -> Answer[Any]:
    with open_run(str(folder), Options(**options)) as run:
        return run.recovery_line(question)


def chosen(answer: Answer[Any]) -> dict[str, int | None]:
    return {f"{e.operator}/{e.subtask}": e.checkpoint for e in answer.result.line}


def found(answer: Answer[Any], id: str) -> Finding:
    return next(finding for finding in answer.findings if finding.id == id)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{nonsense\n", "not JSON"),
        (b"[1]\n", "not a JSON object"),
        (b'{"subtask":0,"checkpoint":2}\n', "no field operator"),
        (b'{"operator":"b","checkpoint":2,"duration_ms":1e999}\n', "beyond 64 bits"),
        (b'{"operator":"b","checkpoint":"2"}\n', 'checkpoint is "2", not an integer'),
        (b'{"operator":"b","checkpoint":2.0}\n', "checkpoint is 2.0, not an integer"),
        (b'{"operator":"b","checkpoint":true}\n', "checkpoint is true, not an integer"),
        (b'{"operator":"b","checkpoint":-1}\n', "less than 0"),
        (b'{"operator":"b","checkpoint":99999999999999999999}\n', "beyond 64 bits"),
        (b'{"operator":"b","checkpoint":2,"received":{"a/0->b/0":-5}}\n', "less than 0"),
        (b'{"operator":"b","checkpoint":2,"received":[]}\n', "not an object"),
        (b'{"operator":"b","checkpoint":2,"crc32c":"00000000"}\n', "crc32c is 00000000"),
        (b'{"operator":"\xff","checkpoint":2}\n', "not UTF-8"),
        (b'{"operator":"b","checkpoint":2,"kinl":"coordinated"}\n', "no member kind, but kinl"),
        (b'{"operator":"b","checkpoint":2,"receivee":{"a/0->b/0":9}}\n', "no member received, but receivee"),
        (b'{"operator":"b","checkpoint":2,"crc32b":"00000000"}\n', "no member crc32c, but crc32b"),
        (b'{"operator":"b","checkpoint":1,"checkpoint":2}\n', 'member "checkpoint" is there twice'),
        (b'{"operator":"b","checkpoint":2,"received":{"a/0->b/0":9,"a/0->b/0":1}}\n', "is there twice"),
        (b'{"operator":"b","checkpoint":2,"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}\n", "not JSON"),
    ],
)
def test_a_bad_line_is_skipped_and_placed_and_costs_nothing_else(tmp_path: Path, bad: bytes, why: str) -> None:
    first, second = map(line, pair(sent=3, received=3))
    path = tmp_path / "checkpoints" / "part.jsonl"
    path.parent.mkdir()
    path.write_bytes(first + bad + second)
    answer = ask(tmp_path)
    assert chosen(answer) == {"a/0": 1, "b/0": 1}
    assert answer.exit_code == 3
    finding = found(answer, "bad-record")
    assert why in finding.message
    assert [(w.path, w.offset) for w in finding.where] == [("checkpoints/part.jsonl", len(first))]


def test_a_last_line_without_a_newline_is_torn_even_if_it_parses(tmp_path: Path) -> None:
    path = write(tmp_path, "checkpoints", [*pair(3, 3), checkpoint("b/0", 2, received={A_TO_B: 3})])
    path.write_bytes(path.read_bytes()[:-1])
    answer = ask(tmp_path)
    assert chosen(answer) == {"a/0": 1, "b/0": 1}
    assert found(answer, "torn-tail").severity == "warning"
    assert answer.exit_code == 0


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_compressed_files_say_the_same(tmp_path: Path, suffix: str) -> None:
    data = b"".join(map(line, pair(2, 7)))
    packs: dict[str, Callable[[bytes], bytes]] = {".jsonl": bytes, ".jsonl.gz": gzip.compress, ".jsonl.zst": zstd}
    path = tmp_path / "checkpoints" / f"part{suffix}"
    path.parent.mkdir()
    path.write_bytes(packs[suffix](data))
    assert chosen(ask(tmp_path)) == {"a/0": 1, "b/0": 0}


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_a_compressed_stream_that_is_cut_keeps_what_came_before(tmp_path: Path, suffix: str) -> None:
    rows = [checkpoint("a/0", n, sent={A_TO_B: n * 7919 % 104729 + n * 104729}) for n in range(1, 3000)]
    data = b"".join(map(line, rows))
    packed = gzip.compress(data) if suffix.endswith("gz") else zstd(data)
    path = tmp_path / "checkpoints" / f"part{suffix}"
    path.parent.mkdir()
    path.write_bytes(packed[: len(packed) // 2])
    answer = ask(tmp_path)
    assert found(answer, "torn-tail")
    assert 500 < (chosen(answer)["a/0"] or 0) < 2999


def test_a_corrupt_gzip_file_keeps_only_lines_with_a_checksum_of_their_own(tmp_path: Path) -> None:
    plain = json.dumps(checkpoint("b/0", 9)).encode() + b"\n"
    data = gzip.compress(plain + b"".join(map(line, pair(3, 3))), compresslevel=0)
    path = tmp_path / "checkpoints" / "part.jsonl.gz"
    path.parent.mkdir()
    path.write_bytes(data[:-8] + bytes([data[-8] ^ 1]) + data[-7:])  # the trailer's CRC
    answer = ask(tmp_path)
    assert chosen(answer) == {"a/0": 1, "b/0": 1}
    assert found(answer, "corrupt-file")


def test_equal_duplicates_count_once_and_unequal_ones_not_at_all(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", pair(3, 3))
    write(tmp_path, "checkpoints", pair(3, 3), "again.jsonl")
    assert ask(tmp_path).exit_code == 0
    write(tmp_path, "checkpoints", pair(3, 2), "other.jsonl")
    answer = ask(tmp_path)
    assert chosen(answer) == {"a/0": 1, "b/0": 0}
    finding = found(answer, "conflicting-checkpoint")
    assert (finding.severity, finding.subject) == ("error", "b/0=1")
    assert len(finding.where) == 3


def test_a_channel_that_is_not_mentioned_keeps_its_watermark(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [*pair(3, 7), checkpoint("b/0", 2)])
    assert chosen(ask(tmp_path)) == {"a/0": 1, "b/0": 0}


def test_a_lost_record_never_makes_a_later_one_look_innocent(tmp_path: Path) -> None:
    """b/0@2 received 7 and is damaged; b/0@3 does not mention the channel, and must not inherit 0 from b/0@1."""
    good = [checkpoint("a/0", 1, sent={A_TO_B: 3}), checkpoint("b/0", 1), checkpoint("b/0", 3)]
    write(tmp_path, "checkpoints", good)
    (tmp_path / "checkpoints" / "bad.jsonl").write_bytes(b'{"operator":"b","checkpoint":2,"received":{"a/0->\n')
    assert chosen(ask(tmp_path)) == {"a/0": 1, "b/0": 1}


def test_incomplete_checkpoints_and_broken_chains_are_on_no_line(tmp_path: Path) -> None:
    rows = [
        checkpoint("a/0", 1, form="base"),
        checkpoint("a/0", 2, form="delta", parent=1),
        checkpoint("a/0", 4, form="delta", parent=3),
        checkpoint("b/0", 1),
        checkpoint("b/0", 2, status="incomplete"),
    ]
    write(tmp_path, "checkpoints", rows)
    answer = ask(tmp_path)
    assert chosen(answer) == {"a/0": 2, "b/0": 1}
    assert found(answer, "broken-chain").subject == "a/0=4"


def test_a_watermark_that_decreases_is_found_and_bounded(tmp_path: Path) -> None:
    rows = [checkpoint("a/0", 1, sent={A_TO_B: 9}), checkpoint("a/0", 2, sent={A_TO_B: 3}), pair(0, 5)[1]]
    write(tmp_path, "checkpoints", rows)
    answer = ask(tmp_path)
    assert found(answer, "watermark-decreases").severity == "error"
    assert chosen(answer) == {"a/0": 2, "b/0": 0}


def test_what_the_log_no_longer_holds_is_a_hole(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", pair(8, 2))
    write(tmp_path, "channels", messages(0, 1, 4, 5, 7, 8, 9))
    answer = ask(tmp_path)
    assert answer.exit_code == 3
    holes = [f.message.split(" gone")[0] for f in answer.findings if f.id == "retention-hole"]
    assert holes == [f"{A_TO_B}: message 6 is", f"{A_TO_B}: messages 2 to 3 are"]
    (channel,) = answer.result.channels
    assert (channel.replay_from, channel.replay_to, channel.messages, channel.bytes) == (2, 8, 3, 30)
    assert (channel.retained, channel.resent_from, channel.resent_to) == (False, 8, 10)


def test_the_manifest_may_say_what_is_retained(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", pair(8, 2))
    (tmp_path / "job.json").write_text(json.dumps({"channels": [{"channel": A_TO_B, "first_retained": 5}]}))
    assert "messages 2 to 4 are gone" in found(ask(tmp_path), "retention-hole").message
    (tmp_path / "job.json").write_text(json.dumps({"channels": [{"channel": A_TO_B, "first_retained": 1}]}))
    assert ask(tmp_path).result.channels[0].retained is True


def test_the_manifest_may_say_which_sources_there_are_and_where_they_begin(tmp_path: Path) -> None:
    """Of what no checkpoint on the line mentions it is all that is known; what one mentions goes before it."""
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1) | {"sources": {"in-0": 7}}, checkpoint("b/0", 1)])
    rows = [("in-0", "a", 3), ("in-1", "a", 4), ("in-2", "b", None), ("in-3", "elsewhere", 5)]
    told = [{"source": name, "operator": operator, "offset": offset} for name, operator, offset in rows]
    (tmp_path / "job.json").write_text(json.dumps({"sources": told}))
    resumed = {(row.source, row.operator, row.offset) for row in ask(tmp_path).result.sources}
    assert resumed == {("in-0", "a", 7), ("in-1", "a", 4), ("in-2", "b", None)}


@pytest.mark.parametrize(
    "row",
    [
        7,
        {"source": "x"},
        {"source": 1, "operator": "a"},
        {"source": "x", "operator": "a", "offset": -1},
        {"source": "x", "operator": "a", "subtask": "0"},
    ],
)
def test_a_source_that_cannot_be_understood_is_a_bad_manifest(tmp_path: Path, row: object) -> None:
    write(tmp_path, "checkpoints", pair(1, 1))
    (tmp_path / "job.json").write_text(json.dumps({"sources": [row]}))
    assert found(ask(tmp_path), "bad-manifest").severity == "error"


def test_messages_logged_twice_are_said(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", pair(4, 2))
    write(tmp_path, "channels", messages(2, 3, 3))
    answer = ask(tmp_path)
    assert answer.result.channels[0].messages == 2
    assert "of messages 2 to 3 the log holds 1 copy too many" in found(answer, "duplicate-messages").message


def test_survivors_without_evidence_end_in_exit_5_with_a_bound(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", pair(3, 3))
    answer = ask(tmp_path, Question(failed=("a",)))
    assert (answer.exit_code, answer.verdict) == (5, "indeterminate")
    assert "b/0" in found(answer, "no-current-state").message
    assert chosen(answer) == {"a/0": 1, "b/0": 1}


def test_nothing_but_the_initial_state_is_exit_4(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [checkpoint("b/0", 1, received={A_TO_B: 2})])
    answer = ask(tmp_path)
    assert (answer.exit_code, answer.verdict) == (4, "unrecoverable")
    assert chosen(answer) == {"a/0": 0, "b/0": 0}


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_split_sizes_do_not_show(tmp_path: Path, size: int) -> None:
    write(tmp_path, "checkpoints", pair(8, 2))
    path = write(tmp_path, "channels", messages(*range(30)))
    path.write_bytes(path.read_bytes() + b"garbage\n" + line(messages(30)[0]))
    assert ask(tmp_path, split_bytes=size) == ask(tmp_path)


def test_a_parquet_column_of_the_wrong_type_is_damage(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", pair(8, 2))
    (tmp_path / "channels").mkdir()
    pq.write_table(pa.table({"channel": [A_TO_B], "seq": ["2"]}), tmp_path / "channels" / "x.parquet")
    answer = ask(tmp_path)
    assert "column seq is string" in found(answer, "corrupt-file").message
    assert found(answer, "retention-hole")


def test_parquet_rows_that_are_no_records_are_placed_by_row(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", pair(4, 2))
    (tmp_path / "channels").mkdir()
    table = pa.table({"channel": [A_TO_B, None, A_TO_B, A_TO_B], "seq": [2, 5, -1, 3]})
    pq.write_table(table, tmp_path / "channels" / "x.parquet", row_group_size=2)
    answer = ask(tmp_path)
    assert [w.offset for w in found(answer, "bad-record").where] == [1, 2]
    assert answer.result.channels[0].retained is True


def test_hostile_numbers_and_names_are_held(tmp_path: Path) -> None:
    huge = (1 << 63) - 2
    rows = [*pair(huge, huge), checkpoint("c/0", 1, sent={"not a channel": 1})]
    write(tmp_path, "checkpoints", rows)
    (tmp_path / "job.json").write_text('{"operators": [{"name": "a", "parallelism": 99999999999}]}')
    answer = ask(tmp_path)
    assert chosen(answer) == {"a/0": 1, "b/0": 1, "c/0": 0}
    assert {"foreign-channel", "bad-manifest"} <= {f.id for f in answer.findings}


def test_a_loop_that_receives_before_it_sends_is_a_log_error(tmp_path: Path) -> None:
    loop = "a/0->a/0"
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1, sent={loop: 1}, received={loop: 2}), checkpoint("b/0", 1)])
    answer = ask(tmp_path)
    assert chosen(answer) == {"a/0": 0, "b/0": 1}
    assert found(answer, "receive-without-send").subject == loop


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_number_without_a_successor_is_no_record(tmp_path: Path, form: str) -> None:
    write(tmp_path, "checkpoints", pair(4, 2))
    last = (1 << 63) - 1
    if form == "jsonl":
        write(tmp_path, "channels", messages(2, 3, last))
    else:
        (tmp_path / "channels").mkdir()
        table = pa.table({"channel": [A_TO_B] * 3, "seq": [2, 3, last]})
        pq.write_table(table, tmp_path / "channels" / "x.parquet")
    answer = ask(tmp_path)
    assert "beyond 64 bits" in found(answer, "bad-record").message
    assert answer.result.channels[0].messages == 2


def test_more_watermarks_than_memory_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "checkpoints", pair(4, 2))
    monkeypatch.setattr("cklog.history.watermarks.MOST_WATERMARKS", 1)
    with pytest.raises(CorruptInput, match="do not fit"):
        ask(tmp_path)


def test_a_file_cut_between_two_lines_is_seen_by_its_checksum_file(tmp_path: Path) -> None:
    path = write(tmp_path, "checkpoints", pair(3, 3))
    whole = path.read_bytes()
    path.with_name(".part.jsonl.crc").write_bytes(encode(whole))
    assert ask(tmp_path).findings == ()
    path.write_bytes(whole.splitlines(keepends=True)[0] + json.dumps(checkpoint("b/0", 9)).encode() + b"\n")
    answer = ask(tmp_path)
    assert found(answer, "checksum-mismatch").severity == "error"
    assert chosen(answer) == {"a/0": 1, "b/0": 0}


def test_half_a_surrogate_pair_in_a_manifest_is_a_bad_manifest(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", pair(1, 1))
    (tmp_path / "job.json").write_text('{"operators": [{"name": "\\ud800"}]}')
    assert "half a surrogate pair" in found(ask(tmp_path), "bad-manifest").message


@pytest.mark.parametrize("value", [None, {}, [], True, 1.5])
@pytest.mark.parametrize("place", ["", "operators", "channels", "sources"])
def test_a_member_of_a_manifest_of_another_type_is_a_bad_manifest(tmp_path: Path, place: str, value: object) -> None:
    """Whoever reads it would take it for absent, and answer as if the job did not say it."""
    write(tmp_path, "checkpoints", pair(1, 1))
    members = {
        "": ("job", "failure_time", "checkpoint_interval_ms"),
        "operators": ("name", "parallelism", "kind", "delivery", "query", "recovery"),
        "channels": ("channel", "log", "first_retained"),
        "sources": ("source", "operator", "subtask"),
    }[place]
    whole = {
        "operators": {"name": "a"},
        "channels": {"channel": "a/0->b/0"},
        "sources": {"source": "x", "operator": "a"},
    }
    for member in members:
        row = {**whole.get(place, {}), member: value}
        (tmp_path / "job.json").write_text(json.dumps({place: [row]} if place else row))
        assert member in found(ask(tmp_path), "bad-manifest").message


def test_members_that_nobody_knows_are_ignored_unless_they_look_like_damaged_ones(tmp_path: Path) -> None:
    """A checksum proves that the writer meant the name; beside the member itself another name is no damage of it."""
    first, second = ({**row, "kinl": "x", "colour": "red"} for row in pair(sent=3, received=3))
    write(tmp_path, "checkpoints", [first])
    plain = tmp_path / "checkpoints" / "plain.jsonl"
    plain.write_text(json.dumps({**second, "kind": "local"}) + "\n")
    answer = ask(tmp_path)
    assert (chosen(answer), answer.exit_code) == ({"a/0": 1, "b/0": 1}, 0)


MANIFEST = {
    "job": "j",
    "operators": [{"name": "a", "parallelism": 1}, {"name": "b"}],
    "channels": [{"channel": A_TO_B, "first_retained": 0}],
    "failed": ["b"],
}


@pytest.mark.parametrize(
    "name", ["operators", "channels", "failed", "name", "parallelism", "channel", "first_retained"]
)
def test_a_bit_in_the_name_of_a_member_of_the_manifest_is_seen(tmp_path: Path, name: str) -> None:
    write(tmp_path, "checkpoints", pair(3, 3))
    text = json.dumps(MANIFEST)
    path = tmp_path / "job.json"
    path.write_text(text)
    assert not [f for f in ask(tmp_path).findings if f.id == "bad-manifest"]
    path.write_text(text.replace(f'"{name}"', f'"{name[:-1]}{chr(ord(name[-1]) ^ 1)}"', 1))
    assert "one bit away" in found(ask(tmp_path), "bad-manifest").message or name in ("name", "channel")


@pytest.mark.parametrize("form", ["jsonl", "jsonl of many", "parquet"])
@pytest.mark.parametrize("place", ["checkpoints", "channels"])
def test_a_file_of_events_in_another_place_is_no_record_of_it(tmp_path: Path, place: str, form: str) -> None:
    """An event names an operator and a checkpoint, or a channel and a number, as records there do."""
    write(tmp_path, "checkpoints", pair(3, 3))
    write(tmp_path, "channels", messages(0, 1, 2))
    about = {"checkpoint": 7} if place == "checkpoints" else {"channel": A_TO_B, "seq": 7}
    word = "checkpoint" if place == "checkpoints" else "receive"
    events = [{"event": word, "operator": "b", "subtask": 0, "lsn": 1, **about, "time": 5}]
    events *= 3 if form == "jsonl of many" else 1
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(events), tmp_path / place / "wrong.parquet")
    else:
        write(tmp_path, place, events, "wrong.jsonl")
    answer = ask(tmp_path)
    assert chosen(answer) == {"a/0": 1, "b/0": 1}
    told = [f for f in answer.findings if f.id in ("bad-record", "corrupt-file")]
    assert len(told) == 1
    assert "an event, which belongs into another table" in told[0].message

"""Token rounds: the figures of the Meteor Shower paper, damage, burst failures, and tuples at the sources."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.model.schemas import SYSTEM
from cklog.parsers.jsonl.columns import decode_mixed
from tests.builders.native import write
from tests.builders.token_rounds import AB, BC, Record, chain, manifest
from tests.program import Ended, cklog
from tests.reading.rounds import asked

CHAIN, PARALLEL = Path("sample_logs/token-rounds"), Path("sample_logs/token-rounds-ap")


def copied(folder: Path, sample: Path = CHAIN) -> Path:
    """The sample without its checksum files, so that records may be changed."""
    return Path(shutil.copytree(sample, folder / "run", ignore=shutil.ignore_patterns("*.crc")))


def rows(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without(folder: Path, place: str, **members: Any) -> list[Record]:
    """Take the records with these members out of a place; returns them."""
    path = folder / place / "part-00000.jsonl"
    every = rows(path)
    gone = [row for row in every if members.items() <= row.items()]
    path.write_text("".join(json.dumps(_unsealed(row)) + "\n" for row in every if row not in gone))
    return gone


def _unsealed(row: Record) -> Record:
    return {name: value for name, value in row.items() if name != "crc32c"}


def test_figure_6_between_instants_3_and_4() -> None:
    """HAU 4 has not processed its token, so HAU 5 waits (paper, section III-A and Figure 6)."""
    code, found, findings = asked(CHAIN)
    assert (code, findings) == (0, {})
    assert (found["round"], found["variant"], found["bytes"]) == (3, "MS-src", 3000 + 48000 + 20000 + 25000 + 90000)
    assert [r["state"] for r in found["rounds"]] == ["complete", "straggling", "complete", "incomplete"]
    assert [(h["operator"], h["why"], h["channel"], h["depth"]) for h in found["hangs"]] == [
        ("HAU4", "token-under-way", "HAU2/0->HAU4/0", 0),
        ("HAU5", "token-not-sent", "HAU4/0->HAU5/0", 1),
    ]
    assert [(i["state"], i["tokens"]) for i in found["individual"] if i["round"] == 4] == [
        ("stored", 0),
        ("stored", 1),
        ("stored", 1),
        ("missing", 0),
        ("missing", 1),
    ]


@pytest.mark.parametrize(
    ("stored", "causes"),
    [
        ((), [("HAU1", None)]),
        (("HAU1",), [("HAU2", "HAU1/0->HAU2/0")]),
        (("HAU1", "HAU2"), [("HAU3", "HAU2/0->HAU3/0"), ("HAU4", "HAU2/0->HAU4/0")]),
        (("HAU1", "HAU2", "HAU3"), [("HAU4", "HAU2/0->HAU4/0")]),
    ],
)
def test_figure_6_at_each_instant(tmp_path: Path, stored: tuple[str, ...], causes: list[tuple[str, str]]) -> None:
    """What has not happened yet is taken out of the last round: the cause is where the token stands."""
    folder = copied(tmp_path)
    for hau in {"HAU1", "HAU2", "HAU3"} - set(stored):
        without(folder, "checkpoints", operator=hau, round=4)
        without(folder, "system", event="checkpoint-stored", operator=hau, round=4)
        for channel in ("HAU1/0->HAU2/0", "HAU2/0->HAU3/0", "HAU2/0->HAU4/0", "HAU3/0->HAU5/0"):
            if channel.startswith(hau):
                without(folder, "system", event="token-sent", channel=channel, round=4)
                without(folder, "system", event="token-received", channel=channel, round=4)
            if channel.endswith(f"->{hau}/0"):
                without(folder, "system", event="token-received", channel=channel, round=4)
    _, found, _ = asked(folder, "--round", "4") if stored else asked(folder)
    if not stored:  # then nothing tells of a fourth round
        assert [r["round"] for r in found["rounds"]] == [1, 2, 3]
        return
    assert [(h["operator"], h["channel"]) for h in found["hangs"] if not h["depth"]] == causes
    assert len({h["operator"] for h in found["hangs"]}) == 5 - len(stored)


def test_figure_8_tuples_1_to_12_belong_to_the_checkpoint() -> None:
    """Between the output tokens T0, T1 and the checkpoint HAU2 sent twelve tuples (paper, section III-B, Figure 8)."""
    code, found, _ = asked(PARALLEL)
    assert (code, found["round"], found["variant"]) == (0, 1, "MS-src+ap")
    saved = [(t["operator"], t["channel"], t["from"], t["to"], t["stored"], t["there"]) for t in found["saved"]]
    assert saved == [("HAU2", "HAU2/0->HAU3/0", 20, 27, 7, True), ("HAU2", "HAU2/0->HAU4/0", 22, 27, 5, True)]
    assert sum(t["to"] - t["from"] for t in found["saved"]) == 12
    assert [t["bytes"] for t in found["saved"]] == [1400, 1000]


def test_tuples_of_a_checkpoint_that_are_gone(tmp_path: Path) -> None:
    folder = copied(tmp_path, PARALLEL)
    without(folder, "system", event="tuples-stored", channel="HAU2/0->HAU3/0")
    code, found, findings = asked(folder)
    assert (code, found["round"]) == (3, 1)
    assert [t["there"] for t in found["saved"]] == [False, True]
    assert "7 of messages 20 to 26 belong to the checkpoint of HAU2/0" in findings["retention-hole"]
    without(folder, "system", event="tuples-stored")  # now nothing says that they were stored at all
    code, found, findings = asked(folder)
    assert [t["there"] for t in found["saved"]] == [None, None]
    assert (code, set(findings)) == (0, {"no-channel-log"})


def test_tuples_of_a_checkpoint_may_lie_in_the_channels_log(tmp_path: Path) -> None:
    folder = copied(tmp_path, PARALLEL)
    without(folder, "system", event="tuples-stored", channel="HAU2/0->HAU3/0")
    logged = [{"channel": "HAU2/0->HAU3/0", "seq": n, "bytes": 50} for n in range(20, 27)]
    write(folder, "channels", logged, "more.jsonl")
    code, found, _ = asked(folder)
    first = found["saved"][0]
    assert (code, first["stored"], first["logged"], first["bytes"], first["there"]) == (0, 0, 7, 350, True)


def test_what_the_source_has_not_preserved_is_told(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    without(folder, "channels", seq=150)
    code, found, findings = asked(folder)
    (row,) = found["preserved"]
    assert (code, row["from"], row["to"], row["preserved"], row["there"]) == (3, 120, 167, 46, False)
    assert "message 150 is gone from the log" in findings["retention-hole"]


def test_what_the_manifest_says_is_deleted_is_gone(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    told = json.loads((folder / "job.json").read_text())
    told["channels"][0]["first_retained"] = 130
    (folder / "job.json").write_text(json.dumps(_unsealed(told)))
    code, found, findings = asked(folder)
    assert (code, found["preserved"][0]["preserved"]) == (3, 37)
    assert "messages 120 to 129" in findings["retention-hole"]


def test_a_received_message_behind_the_log_is_a_hole(tmp_path: Path) -> None:
    """A source saves a tuple before it sends it (section III-A), so the log cannot end below what was received."""
    folder = copied(tmp_path)
    for n in range(150, 167):
        without(folder, "channels", seq=n)
    code, found, findings = asked(folder)
    assert (code, found["preserved"][0]["to"]) == (3, 160)  # the token of round 4
    assert "messages 150 to 159" in findings["retention-hole"]


def test_no_log_of_a_source_is_a_warning(tmp_path: Path) -> None:
    manifest(tmp_path)
    write(tmp_path, "checkpoints", chain(2)[:-1])
    code, found, findings = asked(tmp_path)
    assert (code, found["round"], found["tokens"]) == (0, 1, False)
    assert found["preserved"][0]["there"] is None
    assert "no-channel-log" in findings


def test_sources_with_offsets_of_their_own_need_no_log() -> None:
    code, found, findings = asked(Path("sample_logs/q3-coordinated"))
    assert (code, findings) == (0, {})
    assert {s["source"]: s["offset"] for s in found["sources"]}["persons-0"] == 49


@pytest.mark.parametrize("sample", [CHAIN, PARALLEL, Path("sample_logs/q3-coordinated")], ids=str)
def test_the_line_is_that_of_recovery_line(sample: Path) -> None:
    line = json.loads(cklog("recovery-line", sample, "--json").out)["result"]["line"]
    assert asked(sample)[1]["line"] == line


def test_without_tokens_checkpoints_tell_where_it_hangs(tmp_path: Path) -> None:
    manifest(tmp_path)
    write(tmp_path, "checkpoints", chain(2)[:-2])  # b/0 and c/0 have nothing of round 2
    _, found, _ = asked(tmp_path)
    assert [(h["operator"], h["why"], h["depth"]) for h in found["hangs"]] == [
        ("b", "no-checkpoint", 0),
        ("c", "token-not-sent", 1),
    ]


def test_an_unusable_checkpoint_is_incomplete_not_missing(tmp_path: Path) -> None:
    manifest(tmp_path)
    records = chain(2)
    records[-1]["status"] = "incomplete"
    write(tmp_path, "checkpoints", records)
    _, found, _ = asked(tmp_path)
    assert (found["round"], found["individual"][-1]["state"]) == (1, "incomplete")
    assert found["hangs"][0]["why"] == "checkpoint-not-stored"


def test_a_subtask_that_only_a_token_names_belongs_to_the_round(tmp_path: Path) -> None:
    """Its checkpoints may all be lost: a round without them is not complete."""
    write(tmp_path, "checkpoints", [r for r in chain(1) if r["operator"] != "c"])
    assert asked(tmp_path)[1]["rounds"][0]["missing"] == "c/0 missing"  # b/0 sends to it
    for record in (records := chain(1)[:2]):
        record["sent"] = {AB: 10} if record["operator"] == "a" else {}
    write(tmp_path, "checkpoints", records)
    assert asked(tmp_path)[1]["round"] == 1
    write(tmp_path, "system", [{"event": "token-sent", "channel": BC, "round": 1, "seq": 10}])
    code, found, _ = asked(tmp_path)
    assert (code, found["round"]) == (4, None)


def test_a_stored_checkpoint_without_a_record_does_not_count(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    without(folder, "checkpoints", operator="HAU5", round=3)
    code, found, findings = asked(folder)
    assert (code, found["round"]) == (3, 2)
    assert "round 3 of HAU5/0: it does not count" in findings["unrecorded-checkpoint"]
    assert "messages 80 to 119 are gone" in findings["retention-hole"]  # the source has kept what round 3 needs


def test_a_token_that_stands_elsewhere_is_told(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (token,) = without(folder, "system", event="token-received", channel="HAU4/0->HAU5/0", round=3)
    write(folder, "system", [{**_unsealed(token), "seq": 47}], "more.jsonl")
    _, _, findings = asked(folder)
    assert "HAU5/0 had received 48 messages of HAU4/0->HAU5/0" in findings["misplaced-token"]


def test_damage_is_told_and_a_token_may_have_come(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    path = folder / "system" / "part-00000.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(i for i, row in enumerate(rows(path)) if row.get("channel") == "HAU3/0->HAU5/0" and row["round"] == 4)
    lines[at] = lines[at].replace(b"HAU3", b"HAU2")  # its checksum no longer fits
    path.write_bytes(b"".join(lines))
    code, found, findings = asked(folder)
    assert (code, found["round"], found["rounds"][-1]["tokens_missing"]) == (3, 3, 2)
    assert "bad-record" in findings
    assert found["notes"] == ["records of the system log are lost: a token that is told missing may have come"]


def test_a_round_may_lack_a_subtask_that_nothing_here_names(tmp_path: Path) -> None:
    """Without a manifest, a lost record may have been anybody's: what is complete is a bound."""
    path = write(tmp_path, "checkpoints", chain(2))
    path.write_bytes(path.read_bytes() + b"{}\n")
    code, found, findings = asked(tmp_path)
    assert (code, found["round"]) == (5, 2)
    assert "unknown-subtasks" in findings


def test_other_events_and_tokens_without_a_name(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    other: list[Record] = [
        {"event": "query-state", "time": 1, "open": ["a"]},
        {"event": "boot", "channel": "no channel"},
    ]
    bad = [{"event": "token-sent", "channel": "HAU1", "round": 4}, {"event": "checkpoint-begun", "round": 4}]
    write(folder, "system", [*other, *bad], "more.jsonl")
    code, found, findings = asked(folder)
    assert (code, list(findings)) == (0, ["bad-token"])
    assert findings["bad-token"].startswith("2 token events")
    assert found["rounds"] == asked(CHAIN)[1]["rounds"]
    (log,) = [path for path in (folder / "system").iterdir() if path.name != "more.jsonl"]
    (folder / "system" / "more.jsonl").write_bytes(b"")
    with log.open("a") as file:  # in the file of the others
        file.write("".join(json.dumps(record) + "\n" for record in (*other, *bad)))
    assert asked(folder)[1]["rounds"] == found["rounds"]


def test_as_of_leaves_out_what_came_later() -> None:
    begun = str(1_767_225_600_000 + 30_600)  # in round 3, before HAU5 has stored
    _, found, _ = asked(CHAIN, "--as-of", begun)
    assert found["round"] == 2
    assert [h["operator"] for h in found["hangs"]] == ["HAU5"]
    assert found["hangs"][0]["why"] == "checkpoint-not-begun"


def test_a_system_log_in_parquet_says_the_same(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    path = folder / "system" / "part-00000.jsonl"
    table = pa.Table.from_pylist([_unsealed(row) for row in rows(path)], schema=SYSTEM)
    pq.write_table(table, folder / "system" / "part.parquet")
    path.unlink()
    assert asked(folder)[1] == asked(CHAIN)[1]


def test_tokens_and_checkpoints_in_one_file_are_decoded_at_once() -> None:
    """Their lines have equally many quotes: reading them one by one takes six times as long."""
    token = b'{"event":"token-sent","channel":"a/0->b/0","round":1,"time":5}\n'
    stored = b'{"event":"checkpoint-stored","operator":"a","subtask":0,"round":1}\n'
    found = decode_mixed(token + stored + token, (("channel", "string"), ("operator", "string"), ("round", "int64")))
    assert found is not None
    assert found.to_pydict() == {
        "channel": ["a/0->b/0", None, "a/0->b/0"],
        "operator": [None, "a", None],
        "round": [1, 1, 1],
    }


def test_splits_do_not_show() -> None:
    assert cklog("rounds", CHAIN, "--json", "--split-size", "300").out == cklog("rounds", CHAIN, "--json").out


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["--round", "9"], 66, "no such round"),
        (["--failed-nodes", "n9"], 66, "no such node"),
        (["--as-of", "soon"], 2, "no time"),
    ],
)
def test_wrong_usage(args: list[str], code: int, told: str) -> None:
    ended = cklog("rounds", CHAIN, *args)
    assert (ended.code, ended.out) == (code, "")
    assert told in ended.err


@pytest.mark.parametrize(
    "sample", ["uncoordinated-join", "spark-wordcount", "flink-orders", "kafka-broker", "kafka-streams-state/state"]
)
def test_folders_without_rounds(sample: str) -> None:
    ended: Ended = cklog("rounds", f"sample_logs/{sample}")
    assert (ended.code, ended.out) == (66, "")


def test_tables_are_told_in_words() -> None:
    out = cklog("rounds", CHAIN, "--failed-nodes", "n2,n3").out
    assert out.startswith("Restart everything from round 3, complete at 2026-01-01 00:00:30.900Z")
    assert "Round 4 has 3 of 5, 2 tokens missing. Tokens follow each checkpoint (MS-src)." in out
    assert "round 4: HAU4/0 waits for HAU2/0->HAU4/0: its token was sent and has not been taken" in out
    assert cklog("rounds", CHAIN, "--format", "csv").out.count("\n") == 5


def replayed(folder: Path) -> tuple[int, dict[str, Any], list[str]]:
    """Exit code, `retained` by channel in flight, and the findings of `recovery-line`."""
    ended = cklog("recovery-line", folder, "--json")
    found = json.loads(ended.out)
    channels = {r["channel"]: (r["messages"], r["retained"]) for r in found["result"]["channels"]}
    return ended.code, channels, [f["id"] for f in found["findings"]]


def test_a_line_finds_its_tuples_in_the_checkpoints_that_hold_them(tmp_path: Path) -> None:
    code, channels, findings = replayed(PARALLEL)
    held = {"HAU2/0->HAU3/0": (7, True), "HAU2/0->HAU4/0": (5, True)}
    assert (code, channels | held, findings) == (0, channels, [])
    folder = copied(tmp_path, PARALLEL)
    [gone] = without(folder, "system", event="tuples-stored", channel="HAU2/0->HAU3/0")
    assert gone["tuples"] == 7
    code, channels, findings = replayed(folder)
    assert (code, channels["HAU2/0->HAU3/0"], findings) == (3, (0, False), ["retention-hole"])
    shutil.rmtree(folder / "channels")
    code, channels, findings = replayed(folder)
    assert channels["HAU2/0->HAU4/0"] == (5, True)
    assert channels["HAU2/0->HAU3/0"] == (None, None)
    assert findings == ["no-channel-log"]

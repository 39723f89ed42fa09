"""State inside Flink's metadata: zeros, and what it says otherwise than its handle does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cklog.inputs.snapshots import StateForm
from cklog.parsers.flink.contents import ByteStretch
from cklog.parsers.flink.inlined import check_inlined
from cklog.parsers.flink.java import Malformed
from tests.builders import flink as fb
from tests.builders.flink_folders import OLD, Snapshot, assigned, checkpoint, uri
from tests.reading.flink import scanned
from tests.reading.flink_folders import asked, ids, restored, verdicts

FORMS: tuple[StateForm, ...] = ("operator-state", "keyed-state", "keyed-meta", "changes", "channels", "sst", "manifest")


def refused(data: bytes, form: StateForm | None, **beside: set[str] | tuple[int, ...]) -> bool:
    """Whether these bytes, a few bytes into the metadata, cannot be state of a form."""
    piece = ByteStretch("inline", None, None, len(data), at=3)
    try:
        check_inlined(b"abc" + data + b"xyz", piece, form, **beside)  # type: ignore[arg-type]
    except Malformed as flaw:
        return flaw.at == 3
    return False


@pytest.mark.parametrize("form", FORMS)
def test_zeros_are_no_state(form: StateForm) -> None:
    assert refused(bytes(32), form)
    assert not refused(bytes(31), form)  # a few prove nothing
    assert not refused(bytes(31) + b"x", form)


def test_zeros_may_be_what_a_job_writes_by_itself_or_what_nobody_reads() -> None:
    assert not refused(bytes(99), None)
    assert not refused(bytes(99), "options")


def test_lists_are_those_of_the_handle() -> None:
    data, places = fb.operator_state({"one": [], "other": []})
    assert not refused(data, "operator-state", lists={*places})
    for lists in ({"one"}, {"one", "othes"}, {"one", "other", "more"}, set[str]()):
        assert refused(data, "operator-state", lists=lists)


def test_lists_that_cannot_be_read_prove_nothing() -> None:
    """Somebody's own serializer ends what can be read: names before it count, others may follow."""
    data, _ = fb.operator_state({"one": []})
    simple = fb.simple_serializer()
    own = data.replace(simple, fb.utf("org.example.Own") + fb.i32(1) + b"anything")
    assert own != data
    assert not refused(own, "operator-state", lists={"one", "more"})
    assert refused(own, "operator-state", lists={"more"})
    assert not refused(b"anything else", "operator-state", lists={"more"})


def test_a_current_names_the_manifest_beside_it() -> None:
    assert not refused(b"MANIFEST-000005\n", "current", manifests=(5,))
    assert refused(b"MANIFEST-000004\n", "current", manifests=(5,))
    assert not refused(b"MANIFEST-000004\n", "current")


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(("name", "whole"), [("MANIFEST-000005", True), ("MANIFEST-000007", False)])
def test_the_manifest_may_come_before_or_behind(tmp_path: Path, name: str, whole: bool, behind: bool) -> None:
    files = [fb.utf("CURRENT") + fb.inline(b"MANIFEST-000005\n").data, fb.utf(name) + fb.relative("m", 9).data]
    listed = fb.i32(0) + fb.i32(2) + b"".join(files if behind else reversed(files))
    made = fb.incremental(fb.null())
    keyed = fb.Built(made.data.replace(fb.i32(0) + fb.i32(0) + fb.utf("id"), listed + fb.utf("id")))
    path = tmp_path / "_metadata"
    path.write_bytes(fb.metadata(6, [fb.operator(6, [fb.subtask(6, keyed=keyed)])]).data)
    rows, damage = scanned(path)
    assert bool(rows) == whole
    assert [d.id for d in damage] == ([] if whole else ["corrupt-metadata"])


def two(root: Path) -> Path:
    """Two checkpoints of a job with one reader; return the metadata of the newer one."""
    for number in (6, 7):
        kept = Snapshot(sources=[[("t", 0, 10 * number)]], coordinator=assigned([("t", 0)]))
        folder = checkpoint(root, OLD, number, kept)
    return folder / "_metadata"


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_of_a_list_s_name_takes_a_source_away(tmp_path: Path, bit: int) -> None:
    """The handle's and the state's own: a restore would pass over the list, and begin at the start of the topic."""
    path = two(tmp_path)
    data = path.read_bytes()
    places = [data.index(b"SourceReaderState"), data.rindex(b"SourceReaderState")]
    assert places[0] < places[1]
    for at in (place + letter for place in places for letter in (0, 8, 16)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
        answer = asked("recovery-line", tmp_path, root=tmp_path)
        if restored(answer) == {OLD: uri(OLD, "chk-7")}:
            assert answer["result"]["sources"] or "split-without-reader" in ids(answer), at
        else:
            assert verdicts(answer)[f"{OLD}/chk-7"] == "corrupt"
            assert answer["exit"] == 3


def test_inlined_state_full_of_zeros_costs_the_checkpoint(tmp_path: Path) -> None:
    path = two(tmp_path)
    data = path.read_bytes()
    state, _ = fb.operator_state({"SourceReaderState": [fb.versioned(0, fb.kafka_split("t", 0, 70))]})
    assert data.count(state) == 1
    path.write_bytes(data.replace(state, bytes(len(state))))
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert restored(answer) == {OLD: uri(OLD, "chk-6")}
    assert verdicts(answer)[f"{OLD}/chk-7"] == "corrupt"

"""Looking into Flink's state files: real ones are sound in every form, and damage of each form is found."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from cklog.inputs.snapshots import ContentCheck, StateStretch
from cklog.parsers.flink.java import Cursor
from cklog.parsers.flink.metadata import read
from cklog.parsers.flink.parser import Flink
from cklog.parsers.flink.state_bytes import check_state
from cklog.parsers.flink.state_heads import read_keyed_head
from cklog.storage import Root
from tests.builders import flink as fb
from tests.builders.rocksdb import table

STORED = "file:/mnt/flink/prod/checkpts"
COLUMNS = ("entry", "file", "start", "bytes", "form", "offsets")
FORMS = {"operator-state", "keyed-state", "keyed-meta", "changes", "channels", "sst", "manifest", "current", "options"}
CHECKED = ("changelog", "f120-unaligned", "filemerge", "hashmap-files", "kafka", "rocksdb-incr", "sp-native-39964")


def stretches(root: Path) -> Iterator[tuple[Path, StateStretch]]:
    """Every piece of state below a folder that metadata names and that is there, with its file."""
    parser = Flink(Root(str(root), ((STORED, str(root)),)))
    for split in parser.splits("snapshots", 1 << 20):
        for batch in read(split, "snapshots", COLUMNS):
            assert isinstance(batch, pa.RecordBatch)
            rows = [row for row in batch.to_pylist() if row["entry"] == "handle" and row["file"] is not None]
            places = parser.places(split.path.rpartition("/")[0], [row["file"] for row in rows])
            for row, place in zip(rows, places, strict=True):
                if place.size is not None and row["form"] is not None:
                    offsets = tuple(row["offsets"] or ())
                    piece = StateStretch(place.path, row["start"], row["bytes"], row["form"], offsets)
                    yield root / place.path, piece


@pytest.fixture(scope="module")
def real(shared_data: Path) -> dict[StateStretch, Path]:
    """Pieces of state of every form, of real checkpoints, each once."""
    root = shared_data / "flink-checkpoints"
    found = {piece: path for path, piece in stretches(root)}
    assert {piece.form for piece in found} == FORMS
    return found


def on(path: Path, data: bytes, form: str, offsets: tuple[int, ...] = (), thorough: bool = False) -> ContentCheck:
    path.write_bytes(data)
    return check_state(str(path), StateStretch(path.name, 0, len(data), form, offsets), thorough)


@pytest.mark.parametrize("thorough", [False, True])
def test_real_state_is_sound(real: dict[StateStretch, Path], thorough: bool) -> None:
    for piece, path in real.items():
        found = check_state(str(path), piece, thorough)
        assert (found.flaw, found.unread) == ("", ""), (path, piece)


def test_zeros_of_the_right_size_are_found_in_every_form(real: dict[StateStretch, Path], tmp_path: Path) -> None:
    """In the piece alone: of a file with several, the others stay sound."""
    for number, (piece, path) in enumerate(real.items()):
        data = path.read_bytes()
        size = len(data) - piece.start if piece.bytes is None else piece.bytes + (piece.form == "changes")
        copy = tmp_path / str(number)
        copy.write_bytes(data[: piece.start] + bytes(size) + data[piece.start + size :])
        found = check_state(str(copy), piece, thorough=False)
        assert found.at == piece.start, (path, piece)
        assert found.flaw == f"all of its {size} bytes are zeros" or size > 64 << 10, (path, piece)
        for other, _ in [(p, f) for p, f in real.items() if f == path and p.start != piece.start][:3]:
            assert check_state(str(copy), other, thorough=False).flaw == ""


def test_a_head_with_a_flipped_bit_is_found(real: dict[StateStretch, Path], tmp_path: Path) -> None:
    """In versions, flags and lengths; a letter of a name may be any other."""
    heads = {"operator-state": (0, 1, 2, 3, 4), "keyed-meta": (0, 1, 2, 3, 4, 9), "keyed-state": (0, 1, 2, 3, 4, 9)}
    for piece, path in real.items():
        for at in heads.get(piece.form, ()):
            data = bytearray(path.read_bytes())
            data[piece.start + at] ^= 0x40
            (tmp_path / "copy").write_bytes(data)
            found = check_state(str(tmp_path / "copy"), piece, thorough=False)
            assert found.flaw or (found.unknown and at == 3), (at, piece)  # a later version


def test_every_flipped_bit_in_the_numbers_of_a_source_s_head_is_found(
    real: dict[StateStretch, Path], tmp_path: Path
) -> None:
    """Flink refuses each of those tried: of byte 88, how many serializers there are, with "Incompatible version"."""
    piece, path = next((p, f) for p, f in real.items() if p.form == "operator-state" and b"SourceR" in f.read_bytes())
    data = path.read_bytes()
    head = data[piece.start :][: data.index(b"SerializerSnapshot", piece.start) + 24 - piece.start]
    words = {at for word in re.finditer(rb"[\w.$]{4,}", head) for at in range(*word.span())}
    numbers = sorted(set(range(len(head))) - words)
    assert 88 in numbers
    missed = set()
    for at in numbers:
        for bit in range(8):
            flipped = data[: piece.start + at] + bytes([head[at] ^ 1 << bit]) + data[piece.start + at + 1 :]
            (tmp_path / "copy").write_bytes(flipped)
            found = check_state(str(tmp_path / "copy"), piece, thorough=False)
            if not (found.flaw or found.unknown):
                missed.add((at, head[at] ^ 1 << bit))
    # other versions that there are, a compressed state, and an older version of the serializer
    assert missed == {(3, 4), (3, 2), (4, 1), (len(head) - 3, 2), (len(head) - 3, 1)}


def test_a_head_ends_where_the_file_ends(real: dict[StateStretch, Path]) -> None:
    """What RocksDB's backend keeps beside its files is nothing but a head, of serializers made of others too."""
    told = set()
    for piece, path in real.items():
        if piece.form == "keyed-meta":
            cursor = Cursor(path.read_bytes()[piece.start :][: piece.bytes])
            read_keyed_head(cursor)
            assert cursor.at == cursor.end
            told.add(cursor.end)
    assert told


def a_head_with_somebody_s_serializer() -> bytes:
    """Keyed state `count`; what a class says of itself is its own affair, and where the rest begins is not known."""
    own = fb.utf("org.example.OwnSnapshot") + fb.i32(1) + b"anything"
    told = fb.utf("KEYED_STATE_TYPE") + fb.utf("VALUE") + fb.i32(1) + fb.utf("VALUE_SERIALIZER") + fb.i32(2) + own
    return (
        fb.i32(6) + b"\0" + fb.i32(2) + fb.simple_serializer("Long") + b"\0\1" + fb.utf("count") + fb.i32(0, 1) + told
    )


def test_a_head_is_read_up_to_somebody_s_serializer(tmp_path: Path) -> None:
    assert on(tmp_path / "state", a_head_with_somebody_s_serializer(), "keyed-meta") == ContentCheck()


@pytest.mark.parametrize(
    ("word", "other"),
    [
        (b"\0\5count", b"\0\0"),
        (b"count\0\0\0\0", b"count\xff\xff\xff\xff"),
        (b"\0\5VALUE", b"\0\5VALUD"),
        (b"VALUE_S", b"VALUE_R"),
        (b"\0\0\0\2\0\x17org", b"\0\0\0\1\0\x17org"),
        (b"org.example", b"7rg.example"),
        (b"Snapshot\0\0\0\3", b"Snapshot\0\0\0\0"),
    ],
)
def test_a_head_with_a_word_that_it_cannot_have_is_found(word: bytes, other: bytes, tmp_path: Path) -> None:
    head = a_head_with_somebody_s_serializer()
    assert head.count(word) == 1
    assert on(tmp_path / "state", head.replace(word, other), "keyed-meta").flaw


@pytest.mark.parametrize(
    ("word", "other"),
    [
        (b"\0\0\0\6", b"\0\0\0\7"),
        (b"count\0\0\0\0", b"count\0\0\0\4"),
        (b"\0\5VALUE", b"\0\4TREE"),
        (b"VALUE_S", b"OTHER_S"),
        (b"\0\0\0\2\0\x17org", b"\0\0\0\3\0\x17org"),
        (b"Snapshot\0\0\0\3", b"Snapshot\0\0\0\4"),
    ],
)
def test_a_head_with_a_later_number_or_another_name_is_not_known(word: bytes, other: bytes, tmp_path: Path) -> None:
    head = a_head_with_somebody_s_serializer()
    found = on(tmp_path / "state", head.replace(word, other, 1), "keyed-meta")
    assert (found.flaw, bool(found.unknown)) == ("", True)


def test_key_groups_that_a_power_cut_took(real: dict[StateStretch, Path], tmp_path: Path) -> None:
    """Zeros from the middle on: the head is whole, and key groups are not where they were."""
    tried = 0
    for piece, path in real.items():
        if piece.form == "keyed-state" and len(piece.offsets) > 2:
            data, half = path.read_bytes(), piece.start + (piece.bytes or 0) // 2
            (tmp_path / "copy").write_bytes(data[:half] + bytes(len(data) - half))
            found = check_state(str(tmp_path / "copy"), piece, thorough=False)
            assert "there are zeros where key group" in found.flaw
            assert found.at is not None
            assert found.at >= half
            tried += 1
    assert tried > 10


def test_an_increment_that_is_cut_by_zeros(real: dict[StateStretch, Path], tmp_path: Path) -> None:
    """The full check follows an increment to its end; the cheap one reads how it begins."""
    tried = 0
    for piece, path in real.items():
        if piece.form == "changes" and piece.bytes and piece.bytes > 3000 and piece.offsets == (0,):
            data = path.read_bytes()
            (tmp_path / "copy").write_bytes(data[:900] + bytes(len(data) - 900))
            assert check_state(str(tmp_path / "copy"), piece, thorough=False).flaw == ""
            tried += bool(check_state(str(tmp_path / "copy"), piece, thorough=True).flaw)
    assert tried


@pytest.mark.parametrize(("groups", "sound"), [(0, False), (1, True), (32_769, True), (32_770, False)])
def test_an_increment_has_at_most_every_key_group_and_its_own_entry(groups: int, sound: bool, tmp_path: Path) -> None:
    """Flink has at most 32,768 key groups, and one entry more of what is of no key."""
    data = b"\0" + struct.pack(">iii", groups, 1, -1) + struct.pack(">i", 2) + b"xy"
    found = on(tmp_path / "changes", data, "changes", (0,))
    assert (found.flaw == "") == sound


def full_snapshot(wide: bool) -> tuple[bytes, tuple[int, ...]]:
    """Keyed state as a canonical savepoint has it: key groups 200 to 203, the third one empty."""
    head = (
        fb.i32(6) + b"\0" + fb.i32(2) + fb.utf("org.apache.flink.api.common.typeutils.base.LongSerializer") + b"x" * 9
    )
    data, offsets = head, []
    for group in range(4):
        number = 200 + group if wide else 20 + group
        key = (struct.pack(">H", number) if wide else bytes([number])) + b"key-bytes"
        offsets.append(0 if group == 2 else len(data))
        if group != 2:
            data += struct.pack(">H", 0) + fb.blob(bytes([key[0] | 0x80]) + key[1:]) + fb.blob(b"value")
    return data, (200 if wide else 20, *offsets)


@pytest.mark.parametrize("wide", [False, True])
def test_key_groups_of_a_full_snapshot(wide: bool, tmp_path: Path) -> None:
    """Their first key begins with the group, in one byte or two; its top bit says that something follows."""
    data, offsets = full_snapshot(wide)
    assert on(tmp_path / "state", data, "keyed-state", offsets).flaw == ""
    broken = data[: offsets[-1]] + b"?" * (len(data) - offsets[-1])
    assert on(tmp_path / "state", broken, "keyed-state", offsets) == ContentCheck(
        f"key group {offsets[0] + 3} does not begin there", offsets[-1]
    )
    many = (20, *(90 + i for i in range(20)), len(data) * 9, *(90 + i for i in range(20)))
    assert "key group 40 would begin" in on(tmp_path / "state", data, "keyed-state", many).flaw  # all are compared
    beyond = (*offsets[:-1], len(data) + 1)
    assert "would begin at byte" in on(tmp_path / "state", data, "keyed-state", beyond).flaw


def test_the_first_and_the_last_of_many_key_groups_are_looked_at(tmp_path: Path) -> None:
    """As the heap writes them: each begins with its number."""
    head = full_snapshot(False)[0][:90]
    places = [len(head) + 20 * number for number in range(100)]
    groups = [fb.i32(20 + number) + b"x" * 16 for number in range(100)]
    path, offsets = tmp_path / "state", (20, *places)
    assert on(path, head + b"".join(groups), "keyed-state", offsets).flaw == ""
    for number in (0, 99):
        wrong = [*groups[:number], bytes(20), *groups[number + 1 :]]
        found = on(path, head + b"".join(wrong), "keyed-state", offsets)
        assert found == ContentCheck(f"there are zeros where key group {20 + number} begins", places[number])


@pytest.mark.parametrize("form", ["operator-state", "keyed-state"])
def test_a_version_may_be_one_to_come_but_not_any_number(form: str, tmp_path: Path) -> None:
    """1 to 6 are written, those behind may be some day; 0, negative ones and millions are no versions."""
    numbers = (-1, 0, 7, 9, 99, 255, 1 << 20)
    unknown = {n for n in numbers if on(tmp_path / "state", fb.i32(n) + b"\1\1\1", form).unknown}
    flaws = {n for n in numbers if on(tmp_path / "state", fb.i32(n) + b"\1\1\1", form).flaw}
    assert unknown == {7, 9, 99, 255}
    assert flaws == {-1, 0, 1 << 20}


def test_what_is_not_known_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for form, what in (("operator-state", "operator state"), ("keyed-state", "keyed state")):
        found = on(path, fb.i32(7) + b"\1\1\1", form)
        assert (found.flaw, found.unknown) == ("", f"{what} of version 7, known are up to 6")
    assert on(path, fb.i32(5) + b"\0\0\0\0", "operator-state") == ContentCheck()
    other = full_snapshot(False)[0]
    assert on(path, other + b"?" * 99, "keyed-state", (20, 90, 100, 110)).unproved == (
        "its key groups are laid out in no known way"
    )
    assert on(path, b"\1" + b"?" * 20, "changes", (0,)).unproved == "changes are compressed"
    assert on(path, b"anything", "to-come").unproved == "its layout is not known"


def test_a_file_that_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    gone = check_state(str(tmp_path / "gone"), StateStretch("gone", 0, 5, "sst"), False)
    assert gone.unread
    assert not gone.flaw


def test_options_and_current(tmp_path: Path) -> None:
    assert on(tmp_path / "CURRENT", b"MANIFEST-000005\n", "current") == ContentCheck()
    assert on(tmp_path / "CURRENT", b"MANIFEST-00000u\n", "current").flaw
    assert on(tmp_path / "CURRENT", b"MANIFEST-000005\n", "current", (5,)) == ContentCheck()
    assert on(tmp_path / "OPTIONS", b"[Version]\n" * 200_000, "options") == ContentCheck()
    assert on(tmp_path / "OPTIONS", b"[Version]\n" * 9 + b"\0", "options").at == 90


def test_no_flipped_bit_of_a_current_is_missed(real: dict[StateStretch, Path], tmp_path: Path) -> None:
    """What it names is beside it, by the same handle: another digit names a file that is not there."""
    pieces = [(piece, path) for piece, path in real.items() if piece.form == "current"]
    assert {len(piece.offsets) for piece, _ in pieces} == {1}
    piece, path = pieces[0]
    data = path.read_bytes()[piece.start :][: piece.bytes]
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert on(tmp_path / "CURRENT", bytes(flipped), "current", piece.offsets).flaw, bit


def test_big_state_is_looked_at_here_and_there(tmp_path: Path) -> None:
    found = on(tmp_path / "big", bytes(1 << 20), "keyed-state", (0, 100, 5000))
    assert found == ContentCheck("it is zeros, in 65536 of 1048576 bytes looked at", 0)


def test_a_segment_of_a_merged_file(tmp_path: Path) -> None:
    """The stretch is checked, wherever it is; bytes around it are somebody else's."""
    data = table(tmp_path / "t.sst")
    merged = tmp_path / "merged"
    merged.write_bytes(b"?" * 777 + data + b"?" * 99)
    piece = StateStretch("merged", 777, len(data), "sst")
    assert check_state(str(merged), piece, thorough=True) == ContentCheck()
    merged.write_bytes(b"?" * 777 + data[:40] + b"!" + data[41:] + b"?" * 99)
    assert check_state(str(merged), piece, thorough=False) == ContentCheck()
    found = check_state(str(merged), piece, thorough=True)
    assert found.flaw.startswith("the checksum of its data block is")
    assert found.at == 777

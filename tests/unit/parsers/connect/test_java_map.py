"""The file of a standalone worker: read as Java wrote it, and nothing else is read."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from cklog.parsers.connect.java_map import MapCutShort, NotThisMap, read_map
from tests.builders.connect import Pairs, java_file, java_map, why_no_javac
from tests.conftest import SAMPLES

PINNED = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f72490009746872657368"
    "6f6c6478703f4000000000000c77080000001000000002757200025b42acf317f8060854e00200007870000000255b2261756469742d706f7374"
    "67726573222c7b22736572766572223a226175646974227d5d7571007e00020000002d7b226c736e5f70726f63223a32343032333132382c226c"
    "736e223a32343032333132382c2274784964223a397d7571007e0002000000355b226c6f63616c2d66696c652d736f75726365222c7b2266696c"
    "656e616d65223a222f7661722f6c6f672f6170702e6c6f67227d5d7571007e0002000000117b22706f736974696f6e223a343039367d78"
)
"""What Java 17 wrote of two pairs, once: sample_logs/connect-offsets/standalone."""

PAIRS: Pairs = [
    (b'["audit-postgres",{"server":"audit"}]', b'{"lsn_proc":24023128,"lsn":24023128,"txId":9}'),
    (b'["local-file-source",{"filename":"/var/log/app.log"}]', b'{"position":4096}'),
]


def pairs_of(data: bytes) -> list[tuple[bytes | None, bytes | None]]:
    return [(pair.key, pair.value) for pair in read_map(data).pairs]


def test_bytes_that_java_wrote_are_the_pairs_that_it_was_given() -> None:
    assert (SAMPLES / "connect-offsets" / "standalone" / "connect.offsets").read_bytes() == PINNED
    assert pairs_of(PINNED) == PAIRS
    assert read_map(PINNED).end == len(PINNED)


def test_the_builder_without_java_writes_what_java_does() -> None:
    assert java_map(PAIRS) == PINNED


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 2, 13, 200])
def test_files_that_java_writes_here_are_read(count: int, tmp_path: Path) -> None:
    if why_no_javac():
        pytest.skip(why_no_javac())
    wanted: Pairs = [
        (b'["c%d",{}]' % i, None if i % 5 == 3 else b"" if i % 5 == 4 else b'{"n":%d}' % i * (i + 1))
        for i in range(count)
    ]
    found = pairs_of(java_file(tmp_path, tmp_path / "made", wanted))
    assert sorted(found, key=str) == sorted(wanted, key=str)


@pytest.mark.slow
def test_java_reads_what_is_read_here_and_refuses_what_is_refused(tmp_path: Path) -> None:
    """Another decoder: Java's own, on files with one byte changed. Both may take a byte of a key for another."""
    import subprocess

    if why_no_javac():
        pytest.skip(why_no_javac())
    reader = tmp_path / "ReadOffsets.java"
    reader.write_text(
        "import java.io.*; import java.util.*; public class ReadOffsets { public static void main(String[] a) {"
        "for (String f : a) { try (ObjectInputStream in = new ObjectInputStream(new FileInputStream(f))) {"
        'Object o = in.readObject(); System.out.println(o.getClass() == HashMap.class ? "ok" : "other"); }'
        'catch (EOFException e) { System.out.println("cut"); } catch (Throwable e) { System.out.println("no"); } } } }'
    )
    subprocess.run(["javac", "-d", str(tmp_path), str(reader)], check=True, capture_output=True)
    cases = [PINNED[:at] for at in range(0, len(PINNED), 7)]
    cases += [PINNED[:at] + bytes((PINNED[at] ^ 0x41,)) + PINNED[at + 1 :] for at in range(len(PINNED))]
    names = []
    for i, case in enumerate(cases):
        names.append(tmp_path / f"case-{i}")
        names[-1].write_bytes(case)
    told = subprocess.run(
        ["java", "-cp", str(tmp_path), "ReadOffsets", *map(str, names)], check=True, capture_output=True, text=True
    ).stdout.split()
    for case, java in zip(cases, told, strict=True):
        try:
            read_map(case)
            here = "ok"
        except MapCutShort:
            here = "cut"
        except NotThisMap:
            here = "no"
        if here == "ok":
            assert java == "ok", case.hex()  # never read where Java does not
        if here == "cut":
            assert java in ("cut", "no"), case.hex()


@pytest.mark.parametrize("end", range(len(PINNED)))
def test_a_file_that_ends_early_is_cut_short_and_nothing_else(end: int) -> None:
    with pytest.raises(MapCutShort) as stopped:
        read_map(PINNED[:end])
    assert stopped.value.at <= end


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PK\x03\x04" + PINNED[4:], "the start of a Java stream"),
        (PINNED.replace(b"java.util.HashMap", b"java.util.HashMaq"), "the class java.util.HashMap"),
        (PINNED.replace(b"\x02[B", b"\x02[C"), "the class of arrays of bytes"),
        (PINNED.replace(struct.pack(">f", 0.75), struct.pack(">f", -1.0)), "a load factor"),
        (PINNED.replace(b"\x00\x00\x00\x25[", b"\xff\xff\xff\xff["), "an array of -1 bytes"),
        (PINNED.replace(b"\x71\x00\x7e\x00\x02", b"\x71\x00\x7e\x00\x09"), "an array whose class"),
        (PINNED.replace(b"\x00\x00\x10\x00\x00\x00\x02", b"\x00\x00\x10\xff\xff\xff\xff"), "a map of -1 pairs"),
        (PINNED[:-1] + b"\x79", "the end of the map"),
    ],
)
def test_anything_else_is_refused_with_its_place(data: bytes, why: str) -> None:
    with pytest.raises(NotThisMap) as refused:
        read_map(data)
    assert why in str(refused.value)
    assert 0 <= refused.value.at < len(data)
    assert not isinstance(refused.value, MapCutShort)


def test_a_value_may_be_null_or_the_array_that_was_written_before() -> None:
    shared = java_map([(b"k", b"v")])[:-1].replace(struct.pack(">ii", 16, 1), struct.pack(">ii", 16, 2))
    again = shared + b"\x75\x71\x00\x7e\x00\x02\x00\x00\x00\x01l" + b"\x71\x00\x7e\x00\x04\x78"
    assert pairs_of(again) == [(b"k", b"v"), (b"l", b"v")]
    assert pairs_of(java_map([(b"k", None), (None, b"v")])) == [(b"k", None), (None, b"v")]


def test_a_size_that_claims_billions_costs_nothing() -> None:
    with pytest.raises(MapCutShort):
        read_map(PINNED.replace(struct.pack(">ii", 16, 2), struct.pack(">ii", 16, (1 << 31) - 1))[:-1])
    with pytest.raises(MapCutShort):
        read_map(PINNED.replace(b"\x00\x00\x00\x25[", b"\x7f\xff\xff\xff["))

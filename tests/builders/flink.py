"""A writer of Flink's `_metadata`, by the specification and independent of the reader: every version and handle.

Each function gives bytes and what a reader should say of them: cells of rows, in the order of the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cklog.parsers.flink.derived import operator_id
from tests.builders.sinks.java_bytes import blob as blob
from tests.builders.sinks.java_bytes import described_list
from tests.builders.sinks.java_bytes import i32 as i32
from tests.builders.sinks.java_bytes import i64 as i64
from tests.builders.sinks.java_bytes import offsets as offsets
from tests.builders.sinks.java_bytes import simple_serializer as simple_serializer
from tests.builders.sinks.java_bytes import utf as utf

Cells = dict[str, Any]
MAGIC, MASTER_MAGIC = bytes.fromhex("4960672d"), bytes.fromhex("c96b1696")
COLLECTOR = bytes.fromhex("b91f252c")
NULL_PROPERTIES = bytes.fromhex("aced000570")

CLAIM: tuple[Cells, ...] = ({"entry": "claim", "kind": "changelog"},)
"""The row of a changelog; of several in a file only the first is told."""

ITS_INDEX, ITS_GROUPS, ITS_OFFSETS = b"\xf0its index", b"\xf0its key groups", b"\xf0each of its key groups"
"""Stand for a subtask's index, its key groups, and these with an offset each, until an operator has the subtask."""


@dataclass(frozen=True)
class Built:
    """Bytes, and the rows that they should become."""

    data: bytes = b""
    says: tuple[Cells, ...] = ()

    def __add__(self, other: Built | bytes) -> Built:
        other = other if isinstance(other, Built) else Built(other)
        return Built(self.data + other.data, self.says + other.says)

    def having(self, **cells: Any) -> Built:
        """The same, with cells that its rows do not have yet."""
        return replace(self, says=tuple(cells | said for said in self.says))


def joined(parts: Sequence[Built]) -> Built:
    return sum(parts, Built())


def counted(parts: Sequence[Built]) -> Built:
    return Built(i32(len(parts))) + joined(parts)


# STREAM


def null() -> Built:
    return Built(b"\0")


def inline(content: bytes, name: str = "file:/where/it/never/was") -> Built:
    return Built(b"\1" + utf(name) + blob(content), ({"name": "inline", "bytes": len(content)},))


def absolute(uri: str, size: int) -> Built:
    says = {"name": "absolute", "file": uri, "start": 0, "bytes": size, "at_least": False}
    return Built(b"\2" + i64(size) + utf(uri), (says | _task_owned(uri),))


def relative(path: str, size: int) -> Built:
    says = {"name": "relative", "file": path, "start": 0, "bytes": size, "at_least": False, "detail": "exclusive"}
    return Built(b"\6" + utf(path) + i64(size), (says | _task_owned(path),))


def segment(uri: str, start: int, size: int, scope: int) -> Built:
    says = {"name": "segment", "file": uri, "start": start, "bytes": size, "at_least": True}
    says |= {"detail": ("exclusive", "shared")[scope]} | _task_owned(uri)
    return Built(b"\x0f" + i64(start, size) + i32(scope) + utf(uri) + utf("a-logical-id"), (says,))


def empty() -> Built:
    return Built(b"\x10", ({"name": "empty", "bytes": 0},))


def wrapped(stream: Built) -> Built:
    return Built(b"\3" + i32(0) + offsets([5])) + stream


def _task_owned(uri: str) -> Cells:
    return {"detail": "task-owned"} if "/taskowned/" in uri else {}


def _labelled(stream: Built, detail: str) -> Built:
    """The rows of a stream, its files in the list `detail`."""
    return replace(stream, says=tuple(_with_detail(said, detail) for said in stream.says))


def _with_detail(said: Cells, detail: str) -> Cells:
    known = said.get("detail") == "task-owned" and detail != "changelog"
    return said if known else said | {"detail": detail}


# STATES and KEYED


def states(stream: Built, lists: Mapping[str, tuple[int, Sequence[int]]] | None = None, merged: bool = False) -> Built:
    found = [utf(name) + bytes([mode]) + offsets(at) for name, (mode, at) in (lists or {}).items()]
    head = bytes([17 if merged else 4]) + i32(len(found)) + b"".join(found)
    return Built(head + (utf("") + utf("") + b"\0" if merged else b"")) + stream


def key_groups(kind: int, stream: Built) -> Built:
    grouped = stream.having(form="keyed-state", offsets=ITS_OFFSETS)
    return Built(bytes([kind]) + ITS_OFFSETS) + grouped + (utf("id") if kind == 12 else b"")


LOCAL_NAMES = {
    "{:06}.sst": "sst",
    "MANIFEST-{:06}": "manifest",
    "CURRENT": "current",
    "OPTIONS-{:06}": "options",
    "{:06}.blob": None,
}
"""What an LSM tree calls its files, and what they are; nobody looks into a blob, so that it may hold anything."""


def incremental(
    meta: Built,
    shared: Sequence[Built] = (),
    private: Sequence[Built] = (),
    uid: str = "u-1",
    second: bool = True,
    local: str = "{:06}.blob",
) -> Built:
    head = bytes([11 if second else 5]) + i64(8) + utf(uid) + ITS_GROUPS + (i64(-1) if second else b"")
    lists = [
        counted([Built(utf(local.format(i))) + _labelled(file, detail) for i, file in enumerate(files)])
        for detail, files in (("shared", shared), ("private", private))
    ]
    files = joined(lists).having(form=LOCAL_NAMES[local])
    return (Built(head) + meta.having(form="keyed-meta") + files + (utf("id") if second else b"")).having(uid=uid)


def changelog(materialized: Sequence[Built], changing: Sequence[Built], second: bool = True) -> Built:
    head = Built(bytes([14 if second else 8]) + ITS_GROUPS + i64(77), CLAIM)
    return head + counted(materialized) + counted(changing) + i64(*[3] * (1 + second)) + utf("id")


def changes_inlined(changes: Sequence[bytes]) -> Built:
    body = ITS_GROUPS + i64(1, 5) + i32(len(changes)) + b"".join(i32(-1) + blob(change) for change in changes)
    says = {"name": "inline", "bytes": sum(map(len, changes)), "detail": "changelog"}
    return Built(b"\x09" + body + utf("id"), (*CLAIM, says))


def changes(increments: Sequence[Built], second: bool = True) -> Built:
    parts = [Built(i64(0)) + _labelled(one, "changelog") for one in increments]
    parts = [
        replace(one, says=tuple(s | ({"at_least": True} if "file" in s else {}) for s in one.says)) for one in parts
    ]
    told = counted(parts).having(form="changes", offsets=[0])
    body = Built(bytes([13 if second else 10]) + ITS_GROUPS, CLAIM) + told + i64(1, 1) + utf("id")
    return body + (utf("filesystem") if second else b"")


# CHANNEL


def channel(kind: int | None, gate: int, number: int, size: int, stream: Built) -> Built:
    """Unmerged: `kind` 1 input, 2 output, None before version 6."""
    head = (b"" if kind is None else bytes([kind])) + ITS_INDEX + i32(gate, number) + offsets([4]) + i64(size)
    return Built(head) + _of_channel(stream, size) + Built(says=({"gate": gate, "channel": number, "bytes": size},))


def merged_channels(kind: int, channels: Sequence[tuple[int, int, int]], stream: Built) -> Built:
    """Merged: `kind` 3 input, 4 output; channels are (gate, number, size)."""
    inner = i32(len(channels)) + b"".join(i32(g, c) + i64(size) + offsets([4, 9]) for g, c, size in channels)
    total = sum(size for *_, size in channels)
    head = bytes([kind]) + ITS_INDEX + i64(total)
    says = tuple({"gate": g, "channel": c, "bytes": size} for g, c, size in channels)
    return Built(head) + _of_channel(stream, total) + Built(blob(inner), says)


def _of_channel(stream: Built, size: int) -> Built:
    """The rows of a stream; what is inlined counts as many bytes as are the channel's own."""
    own = {"bytes": size}
    return replace(stream, says=tuple(s | own if s["name"] in ("inline", "empty") else s for s in stream.says))


# SUBTASK, OPERATOR and the file


def subtask(
    version: int,
    index: int = 0,
    managed: Built | None = None,
    raw: Built | None = None,
    keyed: Built | None = None,
    raw_keyed: Built | None = None,
    inputs: Sequence[Built] = (),
    outputs: Sequence[Built] = (),
    older: int | None = None,
) -> Built:
    made = Built(i32(index) + (i64(12) + i32(0) if version == 2 else b""))
    for part, state in (("managed-operator", managed), ("raw-operator", raw)):
        form = "operator-state" if part == "managed-operator" else None
        made += Built(i32(0)) if state is None else Built(i32(1)) + state.having(kind=part, form=form)
    made += (keyed or null()).having(kind="managed-keyed") + _raw(raw_keyed or null()).having(kind="raw-keyed")
    if version >= 3:
        made += _channels("input", inputs) + _channels("output", outputs)
    if version == 7:
        made += b"\0" if older is None else Built(b"\1" + i64(older), ({"entry": "reference", "checkpoint": older},))
    return made.having(entry="handle", subtask=index)


def _raw(state: Built) -> Built:
    """The same as raw state, whose key groups have a layout of their own."""
    says = (said | ({"form": None} if said.get("form") == "keyed-state" else {}) for said in state.says)
    return replace(state, says=tuple(says))


def _channels(side: str, channels: Sequence[Built]) -> Built:
    """Rows of channels, and of each file the first handle."""
    made, files = counted(channels), set()
    says = []
    for said in made.says:
        if "gate" in said:
            says.append({"entry": "channel", "kind": side} | said)
        elif said.get("file") is None or said["file"] not in files:
            files.add(said.get("file"))
            says.append({"kind": f"{side}-channel", "form": "channels"} | said)
    return Built(made.data, tuple(says))


def finished(index: int) -> Built:
    return Built(i32(-index - 1), ({"entry": "finished", "subtask": index},))


def operator(
    version: int,
    subtasks: Sequence[Built] | None = (),
    id: bytes | None = None,
    name: str = "an operator",
    uid: str = "",
    parallelism: int = 4,
    coordinator: bytes | None = None,
    told: Sequence[Cells] = (),
) -> Built:
    """`subtasks` None: all of it had finished. `told`: rows of what the coordinator's state says.

    `id` None: what follows from the uid, or any.
    """
    if id is None:
        id = bytes.fromhex(operator_id(uid)) if uid else bytes(range(16))
    says: Cells = {"entry": "operator", "parallelism": parallelism, "max_parallelism": 128}
    says |= {"kind": "finished"} if subtasks is None else {}
    says |= {"detail": str(len(coordinator))} if coordinator is not None else {}
    says |= {key: text for key, text in (("name", name), ("uid", uid)) if text and version >= 5}
    made = Built((utf(name) + utf(uid) if version >= 5 else b"") + id + i32(parallelism, 128), (says,))
    if version == 2:
        made += i32(1)
    elif coordinator is None:
        made += null()
    else:
        made += inline(coordinator).having(entry="handle", kind="coordinator") + Built(says=tuple(told))
    made += Built(i32(-1)) if subtasks is None else counted([_settled(one, parallelism) for one in subtasks])
    return made.having(operator=id.hex())


def _settled(subtask: Built, parallelism: int, most: int = 128) -> Built:
    """A subtask whose key groups are those that belong to it: group g is of subtask g * parallelism // most."""
    index = struct.unpack(">i", subtask.data[:4])[0]
    its = [group for group in range(most) if group * parallelism // most == index] or [0]
    data = subtask.data.replace(ITS_INDEX, i32(index)).replace(ITS_GROUPS, i32(its[0], len(its)))
    began = {"offsets": [its[0], *[0] * len(its)]}
    says = tuple(row | began if row.get("offsets") == ITS_OFFSETS else row for row in subtask.says)
    return replace(subtask, data=data.replace(ITS_OFFSETS, i32(its[0]) + offsets([0] * len(its))), says=says)


def master(name: str, state: bytes) -> Built:
    inner = i32(1) + utf(name) + blob(state)
    says = {"entry": "handle", "name": "inline", "kind": "master", "bytes": len(state), "detail": name}
    return Built(MASTER_MAGIC + blob(inner), (says,))


def metadata(
    version: int,
    operators: Sequence[Built] = (),
    masters: Sequence[Built] = (),
    checkpoint: int = 8,
    properties: Built | None = None,
    file: str | None = None,
) -> Built:
    made = Built(MAGIC + i32(version) + i64(checkpoint)) + counted(masters) + counted(operators)
    claims = [said for said in made.says if said["entry"] == "claim"]
    made = replace(made, says=tuple(s for s in made.says if s["entry"] != "claim" or s is claims[0]))
    made += Built(says=({"entry": "unread", "kind": "unreleased-version"},) if version == 7 else ())
    told = properties or Built(NULL_PROPERTIES, ({},))
    made += told if version >= 4 else Built(says=({},))
    last = {"entry": "snapshot", "checkpoint": checkpoint, "version": version, "bytes": len(made.data)}
    last |= {"file": file} if file else {}
    return Built(made.data, (*made.says[:-1], last | made.says[-1]))


# Serialized properties

_FLAGS = ("Cancelled", "Failed", "Finished", "Subsumed", "Suspended")
SETTINGS = (*(f"discard{flag}" for flag in _FLAGS), "forced", "unclaimed")
_PACKAGE = "org.apache.flink.runtime.checkpoint."


def properties(settings: Sequence[str] = ("forced",), name: str = "Savepoint", kind: str = "NATIVE") -> Built:
    """Properties as Flink serializes them: of a checkpoint, or of a savepoint."""
    fields = b"".join(b"Z" + utf(setting) for setting in SETTINGS)
    fields += b"L" + utf("checkpointType") + b"t" + utf("Lorg/apache/flink/runtime/checkpoint/SnapshotType;")
    made = _described("CheckpointProperties", 2, 8, fields) + b"p"
    made += bytes(setting in settings for setting in SETTINGS)
    text, constant = b"t" + utf(name), b"~" + _described("Way", 0x12, 0, b"") + _enum() + b"t" + utf(kind)
    if "Savepoint" in name:
        names = b"L" + utf("formatType") + b"t" + utf("LWay;") + b"L" + utf("name") + b"t" + utf("Ljava/lang/String;")
        made += b"s" + _described("SavepointType", 2, 2, names) + b"p" + constant + text
    else:
        names = b"L" + utf("name") + b"t" + utf("Ljava/lang/String;")
        names += b"L" + utf("sharingFilesStrategy") + b"t" + utf("LWay;")
        made += b"s" + _described("CheckpointType", 2, 2, names) + b"p" + text + constant
    says = {"name": name, "kind": kind, "detail": ",".join(sorted(settings))}
    return Built(bytes.fromhex("aced000573") + made, (says,))


def _described(name: str, flags: int, count: int, fields: bytes) -> bytes:
    return b"r" + utf(_PACKAGE + name) + i64(2) + bytes([flags]) + struct.pack(">H", count) + fields + b"x"


def _enum() -> bytes:
    return b"r" + utf("java.lang.Enum") + i64(0) + b"\x12\0\0" + b"xp"


# What sources and sinks keep


def versioned(version: int, data: bytes) -> bytes:
    return i32(version) + blob(data)


def listed(version: int, elements: Sequence[bytes]) -> bytes:
    return i32(version, len(elements)) + b"".join(blob(one) for one in elements)


def operator_state(
    lists: dict[str, Sequence[bytes]], version: int = 6, compressed: bool = False
) -> tuple[bytes, dict[str, tuple[int, list[int]]]]:
    """The bytes of operator state and, for `states`, where its elements are."""
    data = i32(version) + (bytes([compressed]) if version >= 6 else b"") + struct.pack(">H", len(lists))
    data += b"".join(described_list(name) for name in lists) + struct.pack(">H", 0)
    places: dict[str, tuple[int, list[int]]] = {}
    for name, elements in lists.items():
        found = []
        for element in elements:
            found.append(len(data))
            data += blob(element)
        places[name] = (0, found)
    return data, places


NONE = -(1 << 63)


def kafka_split(topic: str, partition: int, start: int, stop: int = NONE) -> bytes:
    return utf(topic) + i32(partition) + i64(start, stop)


def dynamic_split(version: int, cluster: str, split: bytes, until: int | None = None) -> bytes:
    kept = b"" if version == 1 else b"\0" if until is None else b"\1" + i64(until)
    return utf(cluster) + kept + i32(0) + split


def number_split(name: str, start: int, last: int) -> bytes:
    return utf(name) + i64(start, last)


def coordinator(version: int, data: bytes, framing: int = 1) -> bytes:
    return i32(framing) + versioned(version, data)


def committable(name: str, producer: int, epoch: int) -> bytes:
    return struct.pack(">h", epoch) + i64(producer) + utf(name)


def collector(
    checkpoint: int, committables: Sequence[bytes], versions: tuple[int, int] = (1, 2), fate: int = 0
) -> bytes:
    """A committer's state, version 2; `versions` of the serializers of checkpoints and subtasks."""
    requests = [versioned(1, one) + i32(0, fate) for one in committables]
    per_subtask = (i32(0) if versions[1] else b"") + listed(0, requests) + i32(len(requests))
    per_subtask += i32(0) if versions[1] == 2 else i32(0, 0)
    per_checkpoint = i64(checkpoint) + (i32(1) if versions[0] else b"") + listed(versions[1], [per_subtask])
    return COLLECTOR + listed(versions[0], [per_checkpoint])

"""Flink's `_metadata`, against a reader by its description; written by a builder, and as real jobs have left it."""

from __future__ import annotations

import functools
import random
from typing import Any

from cklog.engine.scan import Split
from cklog.parsers.flink.java import Malformed, UnknownVersion
from cklog.parsers.flink.metadata import READER, rows
from cklog.parsers.flink.rows import FIELDS
from tests.builders import flink as fb
from tests.builders.flink import Built
from tests.conftest import REPOSITORY
from tests.differential.mutations import Damage
from tests.differential.references.flink_metadata import NoMetadata, facts_of
from tests.differential.verdicts import Decoder, Outcome

_TEXTS = ("", "a", "naïve", "an operator", "\0", "😀", "x" * 40)
_URIS = ("file:/mnt/shared/a", "s3://b/job/taskowned/x/1", "file:/mnt/chk-8/9")
_SIZES = (0, 1, 77, 1 << 20, 1 << 40)


class _Maker:
    """Parts of metadata by chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._pick = chance.choice

    def stream(self) -> Built:
        """Return a handle of a stream."""
        kind = self._chance.randrange(8)
        if kind == 0:
            return fb.null()
        if kind == 1:
            return fb.empty()
        if kind == 2:
            return fb.relative("0a-" + self._pick("bc"), self._pick(_SIZES))
        if kind == 3:
            return fb.segment(self._pick(_URIS), self._pick(_SIZES), self._pick(_SIZES), self._chance.randrange(2))
        if kind == 4:
            return fb.wrapped(self.stream())
        if kind == 5:
            return fb.inline(self._chance.randbytes(9), self._pick(_TEXTS))
        return fb.absolute(self._pick(_URIS) + self._pick(_TEXTS), self._pick(_SIZES))

    def several(self, make: Any, most: int = 2) -> list[Any]:
        """Return some of what `make` makes."""
        return [make() for _ in range(self._chance.randint(0, most))]

    def operator_state(self) -> Built | None:
        """Return operator state, or none."""
        if self._chance.random() < 0.5:
            return None
        lists = {self._pick(_TEXTS): (self._chance.randrange(3), [4, 9]) for _ in range(self._chance.randrange(3))}
        return fb.states(self.stream(), lists, self._chance.random() < 0.3)

    def keyed(self, depth: int = 0) -> Built:
        """Return a handle of keyed state."""
        kind, second = self._chance.randrange(7 if depth < 2 else 6), self._chance.random() < 0.5
        if kind == 0:
            return fb.null()
        if kind in (1, 2):
            return fb.key_groups(self._pick((3, 7, 12)), self.stream())
        if kind == 3:
            files = [self.several(self.stream, 5), self.several(self.stream)]
            local = self._pick([*fb.LOCAL_NAMES])
            return fb.incremental(self.stream(), files[0], files[1], self._pick(_TEXTS), second, local)
        if kind == 4:
            return fb.changes_inlined([b"change", b""][: self._chance.randrange(3)])
        if kind == 5:
            return fb.changes(self.several(self.stream), second)
        inner = [self.several(lambda: self.keyed(depth + 1)) for _ in range(2)]
        return fb.changelog(inner[0], inner[1], second)

    def channels(self, version: int, side: int) -> list[Built]:
        """Return handles of in-flight data: `side` 1 input, 2 output."""

        def one() -> Built:
            if version >= 6 and self._chance.random() < 0.4:
                held = [(0, number, self._pick(_SIZES)) for number in range(self._chance.randrange(3))]
                return fb.merged_channels(side + 2, held, self.stream())
            kind = side if version >= 6 else None
            return fb.channel(
                kind, self._chance.randrange(2), self._chance.randrange(3), self._pick(_SIZES), self.stream()
            )

        return self.several(one)

    def operator(self, version: int) -> Built:
        """Return an operator with its subtasks."""
        parallelism = self._chance.randint(1, 3)
        made = []
        for index in range(parallelism):
            if version >= 3 and self._chance.random() < 0.15:
                made.append(fb.finished(index))
            elif self._chance.random() < 0.8:
                channels = [self.channels(version, side) if version >= 3 else [] for side in (1, 2)]
                states = [self.operator_state() for _ in range(2)]
                keyed = [self.keyed() for _ in range(2)]
                older = self._pick((None, 7))
                made.append(
                    fb.subtask(
                        version, index, states[0], states[1], keyed[0], keyed[1], channels[0], channels[1], older
                    )
                )
        uid = self._pick(("", "", "an-uid"))
        id = None if uid and version >= 5 else self._chance.randbytes(16)
        whole = version >= 3 and self._chance.random() < 0.1
        state = self._pick((None, b"state")) if version >= 3 else None
        return fb.operator(version, None if whole else made, id, self._pick(_TEXTS), uid, parallelism, state)


@functools.cache
def _real() -> list[bytes]:
    return [path.read_bytes() for path in sorted((REPOSITORY / "sample_logs").glob("flink*/**/_metadata"))]


def _made(damage: Damage) -> bytes:
    chance = damage.chance
    if _real() and chance.random() < 0.1:
        return chance.choice(_real())
    maker, version = _Maker(chance), chance.randint(2, 7)
    properties = None
    if chance.random() < 0.5:
        on = [name for name in sorted(fb.SETTINGS) if chance.random() < 0.5]
        properties = fb.properties(
            on, chance.choice(("Checkpoint", "Savepoint")), chance.choice(("NATIVE", "CANONICAL"))
        )
    masters = [fb.master("hook", b"state")] if chance.random() < 0.2 else []
    operators = [maker.operator(version) for _ in range(chance.choice((0, 1, 1, 2)))]
    return fb.metadata(version, operators, masters, chance.choice((0, 8, 1 << 40)), properties).data


_SPLIT = Split("/nowhere/chk-8/_metadata", "chk-8/_metadata", READER, 0, 1, 1)


def _read(data: bytes) -> Outcome:
    try:
        found = [dict(zip(FIELDS, row, strict=True)) for row in rows(_SPLIT, data)]
    except (Malformed, UnknownVersion) as reason:
        return Outcome("refused", why=str(reason))
    return Outcome("value", sorted(repr(fact) for row in found for fact in _facts(row)))


def _facts(row: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what a row of the table of snapshots says, as the other reader says it."""
    of = (row["operator"], row["subtask"])
    match row["entry"]:
        case "snapshot":
            return [("snapshot", row["version"], row["checkpoint"], None, None)]
        case "operator":
            most = ("parallelism", row["parallelism"], row["max_parallelism"], *of)
            return [("operator", row["operator"], row["name"], row["uid"], *of), most]
        case "handle":
            return [("handle", row["kind"], row["name"], row["file"], row["start"], row["bytes"], *of)]
        case "channel":
            return [("channel", row["kind"], row["gate"], row["channel"], row["bytes"], *of)]
        case "finished":
            return [("finished", row["subtask"], *of)]
        case "reference":
            return [("reference", row["checkpoint"], *of)]
    return []


def _refer(data: bytes) -> Outcome:
    try:
        found = facts_of(data)
    except (NoMetadata, RecursionError) as reason:
        return Outcome("refused", why=str(reason))
    told, operator, subtask = [], None, None
    for fact in found:
        if fact[0] == "operator":
            operator, subtask = fact[1], None
        elif fact[0] == "subtask":
            subtask = fact[1]
            continue
        elif fact[0] == "finished":
            subtask = fact[1]
        told.append(repr((*fact, operator, subtask)))
    return Outcome("value", sorted(told))


DECODERS = (
    Decoder(
        name="flink-metadata", reference="a reader by Flink's own serializers", make=_made, read=_read, refer=_refer
    ),
)

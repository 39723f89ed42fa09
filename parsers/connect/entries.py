"""Entries of a store of offsets: JSON under JSON, as Connect's own converter writes them, and the newest of each key.

    key   = ["CONNECTOR", {partition}]      value = {offset}, or nothing: the offset is deleted

The worker looks for the bytes that its converter makes of a partition: without spaces. A key that somebody wrote by
hand with spaces in it is another one, and neither moves nor deletes anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from cklog.budgets import JSON_NESTED, budgets, check_json, check_nesting, over
from cklog.engine.scan import Damage
from cklog.errors import OverBudget
from cklog.inputs.connectors import ConnectKey, RecordFate, StoredOffset, StoreForm
from cklog.model.findings import Finding, Where

_ENTRY_BYTES = 400
"""What an entry takes beside its bytes."""

_TEXT_OR_BLANK = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[ \t\r\n]', re.DOTALL)


class NotAnEntry(Exception):
    """Why bytes are no key, or no offset, of a connector."""


class Written(NamedTuple):
    """A record as it was written: `number` orders those of one `part` of the store; None as value: a deletion."""

    part: str
    number: int
    where: Where
    key: bytes
    value: bytes | None
    time: int | None = None
    fate: RecordFate = "counts"


def key_of(data: bytes) -> tuple[str, Mapping[str, Any]]:
    """Return connector and partition of a key.

    >>> key_of(b'["orders",{"server":"shop"}]')
    ('orders', {'server': 'shop'})

    Raises
    ------
    NotAnEntry : it is none
    """
    found = json_value(data)
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        found = found["payload"]  # an internal converter with schemas, before Kafka 3.0
    if not isinstance(found, list) or len(found) != 2:
        raise NotAnEntry("its key is no list of a connector's name and a partition")
    name, partition = found
    if not isinstance(name, str) or not isinstance(partition, dict):
        raise NotAnEntry("its key is no connector's name and a map")
    return name, partition


def offset_of(data: bytes | None) -> Mapping[str, Any] | None:
    """Return the offset of a value, None for a deletion.

    Raises
    ------
    NotAnEntry : it is none
    """
    found = None if data is None else json_value(data)
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        found = found["payload"]
    if found is not None and not isinstance(found, dict):
        raise NotAnEntry("its value is no map")
    return found


def json_value(data: bytes) -> Any:
    """Return the value of a JSON text, as strict as JSON is.

    Raises
    ------
    NotAnEntry : it is no JSON, or more than may be read
    """
    try:
        text = data.decode("utf-8")
        check_json(text)
        check_nesting(text)
        return json.loads(text, parse_constant=_no_constant)
    except OverBudget as error:
        raise NotAnEntry(error.message) from None
    except RecursionError:
        raise NotAnEntry(f"JSON that nests deeper than {JSON_NESTED}") from None
    except ValueError as error:
        raise NotAnEntry(f"no JSON ({str(error)[:80]})") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def logical(connector: str, partition: Mapping[str, Any]) -> ConnectKey:
    """Return what two keys have in common that mean the same, however they are written."""
    return ConnectKey(connector, tuple(sorted((name, json.dumps(v, sort_keys=True)) for name, v in partition.items())))


class Newest:
    """The newest entry of each key, of the records of one store in any order."""

    def __init__(self, store: str, form: StoreForm) -> None:
        self._store, self._form = store, form
        self._kept: dict[tuple[str, bytes], _Kept] = {}
        self._bytes = 0
        self.damage: list[Damage] = []

    def add(self, record: Written) -> None:
        """Take in a record; what is none is damage.

        Raises
        ------
        OverBudget : the keys, and the newest value of each, take more than may be held
        """
        if record.fate in ("aborted", "cut"):
            return
        kept = self._kept.get((record.part, record.key))
        if kept is None:
            try:
                connector, partition = key_of(record.key)
            except NotAnEntry as reason:
                self._damaged(record, str(reason))
                return
            kept = self._kept[record.part, record.key] = _Kept(connector, partition)
            self._bytes += len(record.key) + _ENTRY_BYTES
        before = kept.held
        kept.take(record)
        self._bytes += kept.held - before
        if self._bytes > budgets().file:
            raise over("what the keys and offsets take", budgets().file, self._store)

    def _damaged(self, record: Written, why: str) -> None:
        self.damage.append(Damage(record.where.path, "bad-record", record.where.offset, f"{self._named(record)}{why}"))

    def _named(self, record: Written) -> str:
        return f"Kafka offset {record.number}: " if self._form == "topic" else ""

    def entries(self) -> list[StoredOffset]:
        """Return the newest entry of each key that counts, or would if its transaction were committed."""
        found: list[StoredOffset] = []
        for (_, key), kept in self._kept.items():
            made = self._entry(key, kept)
            if made is not None:
                found.append(made)
        return found

    def _entry(self, key: bytes, kept: _Kept) -> StoredOffset | None:
        newest, waiting = kept.newest, kept.pending
        if newest is None:
            if waiting is None:
                return None
            newest = waiting._replace(value=None)  # nothing counts yet: as if it had been deleted
        offset, unread = None, False
        try:
            offset = offset_of(newest.value)
        except NotAnEntry as reason:
            self._damaged(newest, str(reason))
            unread = True
        pending = None
        if waiting is not None and waiting.number > newest.number:
            try:
                pending = offset_of(waiting.value) or {}
            except NotAnEntry as reason:
                self._damaged(waiting, str(reason))
        return StoredOffset(
            store=self._store,
            form=self._form,
            connector=kept.connector,
            partition=kept.partition,
            key=key,
            offset=offset,
            number=newest.number,
            where=newest.where,
            older=kept.older,
            time=newest.time,
            pending=pending,
            ambiguous=kept.disagrees or unread,
        )


class _Kept:
    """What is kept of a key."""

    __slots__ = ("connector", "disagrees", "newest", "older", "partition", "pending")

    def __init__(self, connector: str, partition: Mapping[str, Any]) -> None:
        self.connector, self.partition = connector, partition
        self.newest: Written | None = None
        self.pending: Written | None = None
        self.older = 0
        self.disagrees = False

    @property
    def held(self) -> int:
        """Return how many bytes of values are kept."""
        return sum(len(one.value or b"") for one in (self.newest, self.pending) if one is not None)

    def take(self, record: Written) -> None:
        """Keep a record if it is newer than what is kept."""
        if record.fate == "pending":
            if self.pending is None or record.number >= self.pending.number:
                self.pending = record
            return
        if self.newest is None:
            self.newest = record
            return
        self.older += 1
        if record.number == self.newest.number:
            self.disagrees |= record.value != self.newest.value
        elif record.number > self.newest.number:
            self.newest, self.disagrees = record, False


def settled(entries: Iterable[StoredOffset]) -> tuple[list[StoredOffset], list[Finding]]:
    """Return one entry for each connector, partition and store, and what speaks against taking it for granted.

    Keys that mean the same may be written in several ways, and the same key may lie in several partitions of a topic
    (its number of partitions was changed, or a tool wrote it): Connect takes the newest it reads, cklog says so.
    """
    same: dict[tuple[str, ConnectKey], list[StoredOffset]] = {}
    for entry in entries:
        same.setdefault((entry.store, logical(entry.connector, entry.partition)), []).append(entry)
    found, findings = [], []
    for group in same.values():
        entry, told = _settled(group)
        found.append(entry)
        findings += told
    return sorted(found, key=lambda e: (e.store, e.connector, logical(e.connector, e.partition))), findings


def _settled(group: list[StoredOffset]) -> tuple[StoredOffset, list[Finding]]:
    """The entry that a worker finds, of those that mean the same connector and partition."""
    compact = [one for one in group if is_compact(one.key)]
    chosen = compact or group
    findings = []
    foreign = [one for one in group if not is_compact(one.key)]
    name = group[0].connector
    if foreign:
        message = (
            f"{foreign[0].store}: an entry of connector {name} has a key that no worker writes: "
            f"{foreign[0].key.decode('utf-8', 'replace')}. Workers compare keys byte by byte and never find "
            "it: it moves and deletes nothing. Write it again without spaces, or by Connect's offset API"
        )
        where = tuple(one.where for one in foreign)
        findings.append(Finding("foreign-offset-key", "warning", group[0].connector, message, where))
    newest = max(chosen, key=lambda one: (one.time is not None, one.time or 0, one.number, one.key))
    if any(one.offset != newest.offset for one in chosen):
        message = (
            f"{newest.store} holds several entries for one partition of connector {name}, and nothing tells which one "
            "a worker takes: it depends on the order in which it reads them. Store the right one by Connect's offset "
            "API, and ask again"
        )
        where = tuple(one.where for one in chosen)
        findings.append(Finding("ambiguous-offset", "error", group[0].connector, message, where, effect="unknown"))
        newest = replace(newest, ambiguous=True)
    if not compact:
        newest = replace(newest, offset=None)
    return newest, findings


def is_compact(key: bytes) -> bool:
    """Return whether a key is written without spaces between its parts, as workers do.

    >>> is_compact(b'["a",{"b":"c d"}]'), is_compact(b'["a", {"b": "c d"}]')
    (True, False)
    """
    return all(found[0].startswith(b'"') for found in _TEXT_OR_BLANK.finditer(key))

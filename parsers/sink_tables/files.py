"""The metadata files of a table, read as every other file is: listed in one folder, within budgets, links not followed.

What is wrong with a file becomes a finding here. A file that may not be read is no damage: nobody knows what it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cklog.budgets import budgets, check_json, over, reading
from cklog.errors import CorruptInput, NotFound, UnknownInput, Unreadable, first_line
from cklog.inputs.sink_tables import SinkTable
from cklog.local_files import joined, reason, without_file_scheme, without_query
from cklog.model.findings import Finding, InputUsed, Severity, Where
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.model.wording import first_few
from cklog.storage import FileEntry, Root
from cklog.stores.places import located

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_EXAMPLES, _PLACES = 3, 8
_ASK = "ask again as a user who may read it, or on a whole copy"


class NoJson(ValueError):
    """Bytes that are no whole JSON value."""


class Metadata:
    """The metadata files of one table: what was read of them, and what is wrong with those that could not be.

    `indeterminate` once something is missing that might change what is said of the table.
    """

    def __init__(self, uri: str, root: Root | None = None) -> None:
        self._root = Root(without_file_scheme(uri)) if root is None else root
        self.uri = self._root.path
        self.indeterminate = False
        self._folders: dict[str, Root] = {}
        self._findings: dict[tuple[str, str], list[tuple[str, Finding]]] = {}
        self._bytes = self._files = 0

    def require(self) -> None:
        """Raise an error unless the table's folder is there and may be read."""
        self._root.require()

    def folder(self, name: str) -> Root:
        """Return a folder of the table; no link that leads out of it is followed.

        Raises
        ------
        Unreadable : it is such a link
        """
        if name in self._folders:
            return self._folders[name]
        if name and self._root.leads_out(self._root.uri(name)):
            raise Unreadable(
                f"{self.place(name)}: a link that leads out of the table, which is not followed",
                "name the table where it lies",
            )
        return self._folders.setdefault(name, self._root.below(name))

    def place(self, path: str) -> str:
        """Return a path of the table as findings tell it."""
        return without_query(joined(self.uri, path)) if path else without_query(self.uri)

    def listed(self, name: str, deep: bool = False) -> dict[str, FileEntry]:
        """Return the files of a folder of the table by name; of folders in it only if `deep`, with their paths."""
        return {entry.path: entry for entry in self.folder(name).list() if deep or "/" not in entry.path}

    def read(self, folder: str, entry: FileEntry) -> bytes:
        """Return the bytes of a file.

        Raises
        ------
        Unreadable : it may not be read, or is gone
        OverBudget : it is larger than any metadata
        """
        path = self.place(f"{folder}/{entry.path}" if folder else entry.path)
        most = budgets().metadata
        if entry.size > most:
            raise over("its size", most, path)
        root = self.folder(folder)
        try:
            data = root.read(entry.path, most)
        except OSError as error:
            why = reason(error) if error.errno is not None else first_line(error)
            raise Unreadable(f"{path}: {why}", _ASK) from None
        self._bytes += len(data)
        self._files += 1
        return data

    def open(self, folder: str, entry: FileEntry) -> Any:
        """Open a file that is too large to be held whole.

        Raises
        ------
        Unreadable : it may not be read, or is gone
        """
        try:
            found = self.folder(folder).open(entry.path)
        except OSError as error:
            why = reason(error) if error.errno is not None else first_line(error)
            raise Unreadable(f"{self.place(f'{folder}/{entry.path}')}: {why}", _ASK) from None
        self._bytes += entry.size
        self._files += 1
        return found

    def parsed(self, folder: str, entry: FileEntry) -> Any:
        """Return the JSON value that a file holds; None if it is damaged, which becomes a finding.

        Raises
        ------
        Unreadable, OverBudget : as `read` does
        """
        data = self.read(folder, entry)
        path = f"{folder}/{entry.path}" if folder else entry.path
        try:
            with reading(self.place(path)):
                return json_of(data)
        except NoJson as error:
            self.damaged(path, str(error))
            return None

    def damaged(self, path: str, why: str, offset: int | None = None) -> None:
        """Remember that a file is damaged: what follows from the table is no more than a bound."""
        self.indeterminate = True
        at = f" at byte {offset}" if offset is not None else ""
        message = f"{self.place(path)}: part of the file cannot be read{at}: {why}"
        self._add("corrupt-file", "error", path, message, offset)

    def unknown(self, path: str, why: object) -> None:
        """Remember that a file is of a version that cklog does not know: what the table has taken is not known."""
        self.unsure(UNKNOWN_VERSION, path, f"not read: {why}. Use a newer cklog")

    def is_flawed(self, path: str) -> bool:
        """Return whether a file is known to be damaged, or of a version that is not known."""
        found = (self._findings.get((id, "error"), ()) for id in ("corrupt-file", UNKNOWN_VERSION))
        return any(place == self.place(path) for rows in found for place, _ in rows)

    def say(self, id: str, severity: Severity, path: str, message: str) -> None:
        """Remember a finding about a file or folder of the table."""
        self._add(id, severity, path, f"{self.place(path)}: {message}", None)

    def unsure(self, id: str, path: str, message: str) -> None:
        """Remember a finding that leaves open what the table has taken."""
        self.indeterminate = True
        self.say(id, "error", path, message)

    def _add(self, id: str, severity: Severity, path: str, message: str, offset: int | None) -> None:
        place = self.place(path)
        finding = Finding(id, severity, without_query(self.uri), message, (Where(place, offset),))
        self._findings.setdefault((id, severity), []).append((place, finding))

    def refuse_flawed(self) -> None:
        """Raise an error if nothing else is left of the table than files that cannot be used.

        Raises
        ------
        UnknownInput : one is of a version that is not known
        CorruptInput : one is damaged
        """
        for finding in self.findings():
            if finding.id == UNKNOWN_VERSION:
                raise UnknownInput(finding.message)
        for finding in self.findings():
            if finding.id == "corrupt-file":
                raise CorruptInput(finding.message, "look for another copy of the table")

    def finish(self, table: SinkTable, records: int) -> SinkTable:
        """Return a table with what was found out about its files."""
        findings = (*table.findings, *self.findings())
        unsure = self.indeterminate or bool(self._root.trouble.unread or self._root.trouble.links)
        used = InputUsed(without_query(self.uri), table.format, self._bytes, records)
        return replace(
            table,
            uri=located(table.uri).uri,
            findings=findings,
            inputs=(used,),
            indeterminate=table.indeterminate or unsure,
        )

    def findings(self) -> list[Finding]:
        """Return what was found out about the files so far."""
        return [*self._told(), *self._troubled()]

    def _told(self) -> Iterator[Finding]:
        """Yield the findings, many of one kind as one."""
        for rows in self._findings.values():
            first = rows[0][1]
            if len(rows) == 1:
                yield first
                continue
            names = [place for place, _ in rows]
            others = f"; the same of {len(rows) - 1} more ({first_few(names[1:], _EXAMPLES)})"
            places = tuple(where for _, finding in rows[:_PLACES] for where in finding.where)
            yield replace(first, message=first.message + others, where=places)

    def _troubled(self) -> Iterator[Finding]:
        """Yield what a listing met: folders and files that may not be read, and links that were not followed."""
        subject = without_query(self.uri)
        for path, why in sorted(self._root.trouble.unread.items())[:_PLACES]:
            message = f"{path} cannot be read: {why}. Nothing is said of what was not read: ask again as a user who may"
            yield Finding("unreadable-file", "error", subject, message, (Where(path),), effect="unknown")
        for path, to in sorted(self._root.trouble.links.items())[:_PLACES]:
            message = f"{path}: a link to {to}, which leads out of the table's folder and is not followed"
            yield Finding("unfollowed-link", "warning", subject, message, (Where(path),))


def json_of(data: bytes) -> Any:
    """Return the JSON value that bytes hold.

    Raises
    ------
    NoJson : they are no whole JSON value
    OverBudget : they hold more values than there may be
    """
    check_json(data, budgets().table_values)
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise NoJson(f"byte {error.start} is no UTF-8") from None
    except RecursionError:
        raise NoJson("it nests too deep") from None
    except ValueError as error:
        what = "it is empty" if not data.strip() else f"no whole JSON: {first_line(error)}"
        raise NoJson(what) from None


def members(value: Any) -> dict[str, Any]:
    """Return a JSON object, {} for anything else.

    >>> members([1])
    {}
    """
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str:
    r"""Return text that can be written as UTF-8; "" for what is no text. JSON can spell halves of surrogate pairs.

    >>> text("a\ud800"), text(7)
    ('a\\ud800', '')
    """
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """Return a whole number of 64 bits, of a JSON number or of text; None: it is none.

    >>> whole("12"), whole(True), whole("9" * 19), whole("1.5")
    (12, None, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None


def require_found(there: bool, uri: str, what: str) -> None:
    """Raise `NotFound` unless there is what makes a folder a table."""
    if not there:
        raise NotFound(f"{without_query(uri)}: no {what}", "name the folder of the table, or its metadata file")

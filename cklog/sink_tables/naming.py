"""Tables as they are named, `--sink [NAME=]URI`, and opened by whatever reads their format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from cklog.errors import CorruptInput, UnknownInput, Unreadable, UsageError
from cklog.inputs.sink_tables import SinkTable
from cklog.local_files import is_local
from cklog.model.findings import Finding, InputUsed, Where
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.sink_tables.fitting import NamedTable
from cklog.stores.places import numbered

_READS = "cklog.parsers.sink_tables.opening"
_BRANCH = "?branch="
_NO_FOLDER = "catalog:"


@dataclass(frozen=True, slots=True)
class NamedUri:
    """A table that was asked about, what it is called in the answer, and its branch; "" is the main one."""

    name: str
    uri: str
    branch: str = ""


@dataclass(frozen=True, slots=True)
class OpenedTables:
    """The tables of a job that could be read, those that could not, and what there is to say of both."""

    tables: tuple[NamedTable, ...]
    unread: tuple[NamedUri, ...] = ()
    findings: tuple[Finding, ...] = ()
    inputs: tuple[InputUsed, ...] = field(default=())

    def without(self, others: Sequence[NamedTable]) -> OpenedTables:
        """Return all but some of the tables, and nothing of what there is to say of these."""
        told = [finding for one in others for finding in one.table.findings]
        used = [used for one in others for used in one.table.inputs]
        return OpenedTables(
            tuple(one for one in self.tables if one not in others),
            self.unread,
            tuple(finding for finding in self.findings if finding not in told),
            tuple(one for one in self.inputs if one not in used),
        )


def table_maps(opened: OpenedTables, asked: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return for each table the place that its own metadata name, and the folder that was given for it.

    A job stores its files by the first, and a copy of the table has them in the second.
    """
    folders = {one.name: one.uri for one in map(named_uri, asked)}
    places = ((one.table.location, folders[one.name]) for one in opened.tables)
    return tuple((stored, here) for stored, here in places if stored and not here.startswith(_NO_FOLDER))


def named_uri(text: str) -> NamedUri:
    """Return name, URI and branch of `[NAME=]URI[?branch=BRANCH]`; without a name the end of the URI is one.

    >>> named_uri("orders=s3://lake/db/orders"), named_uri("/lake/day=1/t/")
    (NamedUri(name='orders', uri='s3://lake/db/orders', branch=''), NamedUri(name='t', uri='/lake/day=1/t/', branch=''))
    >>> named_uri("/lake/t?branch=audit")
    NamedUri(name='t', uri='/lake/t', branch='audit')

    Raises
    ------
    UsageError : there is no URI
    """
    name, equals, uri = text.partition("=")
    if not equals or any(mark in name for mark in "/\\:"):
        name, uri = "", text
    if not uri:
        raise UsageError(
            f"--sink {text}: expected [NAME=]URI[?branch=BRANCH]", "such as --sink orders=s3://lake/orders"
        )
    uri, _, branch = uri.partition(_BRANCH)
    return NamedUri(name or uri.rstrip("/").replace("\\", "/").rpartition("/")[2] or uri, uri, branch)


def open_tables(asked: Sequence[str], store: str = "") -> OpenedTables:
    """Read the tables of `--sink`, through the store of a number where they lie in one.

    One that is there and cannot be read, or not understood, is a finding: what it has taken is then not known.

    Raises
    ------
    UsageError : a name is given twice, a URI is missing, or the library that reads a format is not installed
    NotFound : there is no such table
    """
    named = [named_uri(text) for text in asked]
    names = [one.name for one in named]
    again = next((name for name in names if names.count(name) > 1), None)
    if again is not None:
        raise UsageError(f"--sink {again}: two tables of one name", "name them: --sink a=URI --sink b=URI")
    read = _reader()
    tables, unread, findings = [], [], []
    for one in named:
        try:
            table = read(_through(one.uri, store), branch=one.branch)
            if unknown := [f for f in table.findings if f.id == UNKNOWN_VERSION and f.severity == "error"]:
                unread.append(one)  # what else its files say may be out of date, so that nothing is judged by it
                findings += unknown
            else:
                tables.append(NamedTable(one.name, table, (one.name,)))
        except (CorruptInput, Unreadable) as error:
            unread.append(one)
            what = f"{one.name}: {error.message}; what this table has taken is not known"
            id = error.id if isinstance(error, UnknownInput) else "sink-unread"
            findings.append(Finding(id, "error", one.name, what, (Where(one.uri),), effect="unknown"))
    findings += [finding for one in tables for finding in one.table.findings]
    inputs: Iterable[InputUsed] = (used for one in tables for used in one.table.inputs)
    return OpenedTables(tuple(tables), tuple(unread), tuple(findings), tuple(inputs))


def _through(uri: str, store: str) -> str:
    return uri if is_local(uri) else numbered(uri, store)


def _reader() -> Callable[..., SinkTable]:
    """What reads tables: a parser, which is found by name as all of them are."""
    try:
        found: Callable[..., SinkTable] = import_module(_READS).read_table
    except ModuleNotFoundError as error:
        if error.name != _READS:
            raise
        raise UsageError("--sink: nothing is installed that reads tables") from None
    return found

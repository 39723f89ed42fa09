"""What lies at a URI: which format's table it is, and that table read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cklog.errors import NotFound, Unreadable, UsageError, first_line
from cklog.inputs.sink_tables import SinkTable, TableFormat
from cklog.local_files import joined, reason, without_query
from cklog.stores.opening import file_info

CATALOG = "catalog:"


class _Format(NamedTuple):
    """A format of tables: the folder that marks a table of it, and what reads it.

    `beside`: another folder that is there, too, so that nothing else is taken for a table.
    """

    marks: str
    beside: str
    read: Callable[[str, str], SinkTable]


def _iceberg(uri: str, branch: str) -> SinkTable:
    from cklog.parsers.sink_tables import iceberg

    return iceberg.read(uri, branch)


def _delta(uri: str, branch: str) -> SinkTable:
    from cklog.parsers.sink_tables import delta

    return delta.read(uri, branch)


def _paimon(uri: str, branch: str) -> SinkTable:
    from cklog.parsers.sink_tables import paimon

    return paimon.read(uri, branch)


def _hudi(uri: str, branch: str) -> SinkTable:
    from cklog.parsers.sink_tables import hudi

    return hudi.read(uri, branch)


_FORMATS: dict[TableFormat, _Format] = {
    "delta": _Format("_delta_log", "", _delta),
    "iceberg": _Format("metadata", "", _iceberg),
    "paimon": _Format("schema", "snapshot", _paimon),
    "hudi": _Format(".hoodie", "", _hudi),
}


def read_table(uri: str, format: str = "", branch: str = "", catalog: str = "") -> SinkTable:
    """Read the table at a URI; each format's module is imported only when it is needed.

    Parameters
    ----------
    uri : the folder of a table, a metadata file of Iceberg, or `catalog:NAME.NAMESPACE.TABLE`
    format : "" is found by what lies there
    branch : "" is the main one
    catalog : where `uri` is the name of a table, the catalog that has it

    Raises
    ------
    UsageError : no such format, one that has no branches, or a library that is not installed
    NotFound : there is no table
    CorruptInput : so much of its metadata is damaged that nothing can be said of it
    Unreadable : it may not be read
    """
    if catalog:
        uri = f"{CATALOG}{catalog}.{uri}"
    found = _known(format) if format else _recognised(uri)
    if uri.startswith(CATALOG) and found != "iceberg":
        raise UsageError(f"{uri}: catalogs are asked for tables of Iceberg", "name the folder of the table")
    return _FORMATS[found].read(uri, branch)


def _known(format: str) -> TableFormat:
    """Return the format of a name."""
    for known in _FORMATS:
        if known == format.lower():
            return known
    raise UsageError(f"no format of tables: {format!r}", f"there are {', '.join(_FORMATS)}")


def _recognised(uri: str) -> TableFormat:
    """Return the format of the table that lies at a URI."""
    if uri.startswith(CATALOG) or without_query(uri).endswith((".metadata.json", ".metadata.json.gz")):
        return "iceberg"
    try:
        found = [
            name
            for name, form in _FORMATS.items()
            if all(file_info(joined(uri, folder)).kind == "folder" for folder in (form.marks, form.beside) if folder)
        ]
        there = bool(found) or file_info(uri).kind != "nothing"
    except OSError as error:
        why = reason(error) if error.errno is not None else first_line(error)
        raise Unreadable(f"{without_query(uri)}: {why}", "ask again as a user who may read it") from None
    if not there:
        raise NotFound(f"{without_query(uri)}: no such table")
    if not found:
        kinds = ", ".join(f"{form.marks}/ ({name})" for name, form in _FORMATS.items())
        raise NotFound(f"{without_query(uri)}: no table that cklog knows", f"a table has one of {kinds}")
    if len(found) > 1:
        raise UsageError(f"{without_query(uri)}: a table of {' and of '.join(found)}", "say which one is meant")
    return found[0]

"""A table as it is after it went to another commit, and the statements that take it there.

What a sink remembers goes back with the rows in Iceberg (it walks from the head along the parents), Paimon (later
snapshots are deleted) and Hudi. In Delta it does not: RESTORE makes a new version, whose transactions are the newest
ones all the same, so that what is to be written again is dropped.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from cklog.inputs.sink_tables import SinkTable, Writer
from cklog.sink_tables.rules import UNNUMBERED, rule_of


def candidates(table: SinkTable, late: Container[int]) -> list[int]:
    """Return the commits to which a table may go, the newest first: of each stretch the last one before a `late` one.

    A stretch ends where the table was restored; only Delta says what it restored then, so that of other formats none
    but the commits of the head are known. Going further back than to the last one before what is too new helps nobody.

    Parameters
    ----------
    late : places of commits that are newer than the line
    """
    if table.format != "delta":
        stretches = [[place for place, commit in enumerate(table.commits) if not commit.undone]]
    else:
        starts = [0, *(at for at, commit in enumerate(table.commits) if commit.operation == "restore")]
        ends = [*starts[1:], len(table.commits)]
        stretches = [list(range(start, end)) for start, end in zip(starts, ends, strict=True)]
    found = []
    for stretch in reversed(stretches):
        place = None
        for at in stretch:
            if at in late:
                break
            place = at
        if place is not None:
            found.append(place)
    return found


def gone_to(table: SinkTable, place: int) -> SinkTable:
    """Return a table as it is after it went to the commit at a place in `commits`."""
    on = _line_of(table, place)
    commits = tuple(replace(commit, undone=at not in on) for at, commit in enumerate(table.commits))
    found: dict[Writer, int] = {}
    for at in sorted(on):
        for stamp in commits[at].stamps:
            if stamp.number is not None and stamp.number < UNNUMBERED:
                found[stamp.writer] = stamp.number  # the newest commit says it, and not the greatest number
    stamped = {stamp.writer for commit in table.commits for stamp in commit.stamps}
    kept = {
        writer: number
        for writer, number in table.remembers.items()
        if not rule_of("batch" if writer.counts == "batch" else "checkpoint", table.format).goes_back
        or (table.expired and writer not in stamped)
    }
    if table.format == "delta":
        found = {}
    return replace(table, commits=commits, head=table.commits[place].id, remembers={**found, **kept})


def _line_of(table: SinkTable, place: int) -> set[int]:
    """The places of the commits whose rows a table has that goes to one: its parents, and those of what it restored."""
    if table.format != "delta":
        return {at for at in range(place + 1) if not table.commits[at].undone}
    places = {commit.id: at for at, commit in enumerate(table.commits)}
    found: set[int] = set()
    at: int | None = place
    while at is not None and at >= 0 and at not in found:
        found.add(at)
        restored = table.commits[at].restores
        at = at - 1 if restored is None else places.get(restored)
    return found


def statements(table: SinkTable, name: str, commit: str, later: tuple[str, ...] = ()) -> Mapping[str, str]:
    """Return the statements that take a table back to a commit, by where they are run; none if they could be misread.

    Parameters
    ----------
    name : the table's name in a catalog, or what stands for it
    later : commits to be taken back, the newest first; for formats that take them back one by one

    >>> from cklog.inputs.sink_tables import SinkTable
    >>> statements(SinkTable("s3://b/t", "iceberg", "main", (), "9", {}, {}), "cat.db.t", "7")["spark-sql"]
    "CALL cat.system.rollback_to_snapshot('db.t', 7)"
    >>> statements(SinkTable("s3://b/t", "iceberg", "audit", (), "9", {}, {}), "cat.db.t", "7")["spark-sql"]
    'ALTER TABLE cat.db.t REPLACE BRANCH `audit` AS OF VERSION 7'
    """
    catalog, _, rest = name.rpartition(".")[0].partition(".") if name.count(".") > 1 else ("<catalog>", "", "")
    short = f"{rest}.{name.rpartition('.')[2]}" if rest else name
    if table.branch != "main":
        words = _of_branch(table, catalog, short, commit)
    else:
        words = {"iceberg": _iceberg, "delta": _delta, "paimon": _paimon, "hudi": _hudi}[table.format](
            catalog, short, table.uri, commit, later
        )
    told = f"{name}{table.uri}{table.branch}"
    safe = commit.isascii() and commit.isalnum() and not any(c in "'\"`\\\n" for c in told)
    return words if safe else {}


def _of_branch(table: SinkTable, catalog: str, name: str, commit: str) -> dict[str, str]:
    """The statements for another branch than the main one, which procedures of tables leave alone."""
    if table.format == "paimon":
        return _paimon(catalog, f"{name}$branch_{table.branch}", table.uri, commit, ())
    return {
        "spark-sql": f"ALTER TABLE {catalog}.{name} REPLACE BRANCH `{table.branch}` AS OF VERSION {commit}",
        "library": f'table.manageSnapshots().replaceBranch("{table.branch}", {commit}L).commit();',
    }


def _iceberg(catalog: str, name: str, uri: str, commit: str, later: tuple[str, ...]) -> dict[str, str]:
    return {
        "spark-sql": f"CALL {catalog}.system.rollback_to_snapshot('{name}', {commit})",
        "library": f"table.manageSnapshots().rollbackTo({commit}L).commit();",
    }


def _delta(catalog: str, name: str, uri: str, commit: str, later: tuple[str, ...]) -> dict[str, str]:
    return {
        "spark-sql": f"RESTORE TABLE delta.`{uri}` TO VERSION AS OF {commit}",
        "library": f'DeltaTable("{uri}").restore({commit})',
    }


def _paimon(catalog: str, name: str, uri: str, commit: str, later: tuple[str, ...]) -> dict[str, str]:
    return {
        "flink-sql": f"CALL sys.rollback_to(`table` => '{name}', snapshot_id => {commit})",
        "spark-sql": f"CALL sys.rollback(table => '{name}', version => '{commit}')",
    }


def _hudi(catalog: str, name: str, uri: str, commit: str, later: tuple[str, ...]) -> dict[str, str]:
    calls = [f"CALL rollback_to_instant(table => '{name}', instant_time => '{one}')" for one in later]
    return {"spark-sql": ";\n".join(calls)} if all(one.isalnum() for one in later) else {}

"""Results with a trust column: trustworthy, indefinite or untrustworthy, by their times and the phases of a recovery.

Only results that came after the restart can lack trust (Brand et al., BTW 2017, Figure 6). Where a recovery yields
results a second time, both copies have the same time: they are told apart by the log's order, in which times step back
once, at the restart. Results are read and written part by part, in tasks: none of them reaches the driver.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cklog.arrays.columns import timestamps_as_ms
from cklog.arrays.types import Ints
from cklog.engine.reading import Reading
from cklog.engine.scan import Damage, Engine, Scan, Split
from cklog.inputs.damage import damage_findings
from cklog.model.findings import Finding, InputUsed
from cklog.model.trust import TRUSTS, Trust
from cklog.model.verdict import refuse_damage
from cklog.model.wording import many
from cklog.storage import Root

Codes = NDArray[np.int8]
COLUMN = "trust"
TYPE = pa.dictionary(pa.int8(), pa.string())
NOTHING = pa.schema([pa.field(COLUMN, pa.string())])
"""The columns of a part that holds no result."""

UNTIMED = "untimed"

PLACES = pa.schema([("uri", pa.string()), ("path", pa.string())])
for _name in ("start", "end", "listed"):
    PLACES = PLACES.append(pa.field(_name, pa.int64()))
"""What a task gets of a split: where its part of the results lies, in a file that had `listed` bytes."""

COUNTS = pa.schema([("path", pa.string()), ("what", pa.string()), ("offset", pa.int64()), ("detail", pa.string())])
COUNTS = COUNTS.append(pa.field("rows", pa.int64()))
"""What a task gives back: rows by trust, and damage (`what` is then a finding's id)."""

ORDER = pa.schema([("path", pa.string()), ("start", pa.int64()), ("first", pa.int64()), ("highest", pa.int64())])
for _name in ("untimed", "falls", "to", "under"):
    ORDER = ORDER.append(pa.field(_name, pa.int64()))
"""Times of a split: the first, after rows that are `untimed`, the highest, and the first row that `falls`: `to` a time
below the one before, `under` the highest so far."""


@dataclass(frozen=True, slots=True)
class TrustInterval:
    """A stretch of time whose results, if they came after the restart, are not to be trusted more than this.

    Half-open, in ms; None: no bound.
    """

    from_: int | None
    to: int | None
    trust: Trust


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Trust as a function of time: `codes[i]`, a place in `TRUSTS`, up to before `bounds[i]`; shapes (k,), (k + 1,)."""

    bounds: Ints
    codes: Codes

    def at(self, times: Ints) -> Codes:
        """Return the trust of each time, shape (n,)."""
        found: Codes = self.codes[np.searchsorted(self.bounds, times, side="right")]
        return found


def steps_of(spans: Iterable[TrustInterval]) -> Steps:
    """Return the minimum of the trusts of all spans at each time.

    >>> steps = steps_of([TrustInterval(10, 30, "indefinite"), TrustInterval(20, None, "untrustworthy")])
    >>> [TRUSTS[code] for code in steps.at(np.array([9, 10, 20, 99])).tolist()]
    ['trustworthy', 'indefinite', 'untrustworthy', 'untrustworthy']
    """
    spans = [span for span in spans if span.from_ is None or span.to is None or span.from_ < span.to]
    bounds = np.unique([edge for s in spans for edge in (s.from_, s.to) if edge is not None]).astype(np.int64)
    codes = np.zeros(len(bounds) + 1, np.int8)
    for span in spans:
        first = 0 if span.from_ is None else int(np.searchsorted(bounds, span.from_)) + 1
        last = len(codes) if span.to is None else int(np.searchsorted(bounds, span.to)) + 1
        codes[first:last] = np.maximum(codes[first:last], TRUSTS.index(span.trust))
    return Steps(bounds, codes)


def annotate(batch: pa.RecordBatch, column: str, steps: Steps, before: int = 0) -> pa.RecordBatch:
    """Return the batch with a column `trust`, the last; the first `before` rows came before the restart.

    A result without a time is indefinite. A column of that name is replaced.
    """
    codes = codes_of(batch.column(column), steps, before)
    trust = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(TRUSTS))
    kept = [i for i, name in enumerate(batch.schema.names) if name != COLUMN]
    fields = [*(batch.schema.field(i) for i in kept), pa.field(COLUMN, TYPE)]
    schema = pa.schema(fields, batch.schema.metadata)
    return pa.RecordBatch.from_arrays([*(batch.column(i) for i in kept), trust], schema=schema)


def codes_of(column: pa.Array, steps: Steps, before: int) -> Codes:
    """Return the trust of each row of a time column, shape (n,)."""
    times = milliseconds(column)
    codes = steps.at(pc.fill_null(times, 0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    if times.null_count:
        codes[times.is_null().to_numpy(zero_copy_only=False)] = TRUSTS.index("indefinite")
    codes[:before] = 0
    return codes


def milliseconds(column: pa.Array) -> pa.Array:
    """Return a column of integers, or of timestamps, as milliseconds.

    Raises
    ------
    ArrowInvalid : it is of another type, or a time is beyond 64 bits
    """
    if pa.types.is_timestamp(column.type):
        return timestamps_as_ms(column)
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise pa.ArrowInvalid(f"it is {column.type}: times are integers (ms) or timestamps")
    return column.cast(pa.int64())


class OffersResults(Protocol):
    """A parser of results (`cklog.parsers.results.files`)."""

    form: str
    bytes: int

    def splits(self, step: int) -> list[Split]: ...

    def inputs(self, records: Mapping[str, int]) -> tuple[InputUsed, ...]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What tasks need to know: where each split's part goes, and how many of its rows came before the restart.

    `parts` and `before` by (path, start) of a split; one that is not in `before` is all after the restart, one with -1
    all before it. `writer` is the parser's function, as module:function.
    """

    writer: str
    column: str
    steps: Steps
    target: str
    form: str
    parts: Mapping[tuple[str, int], str]
    before: Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Annotated:
    """Where annotated results went, and how many there are of each trust."""

    target: str
    form: str
    parts: int
    rows: int
    trust: dict[str, int]


def annotate_results(
    results: OffersResults,
    spans: Iterable[TrustInterval],
    column: str,
    target: str,
    form: str,
    again: tuple[int, int | None] | None,
    reading: Reading,
) -> tuple[Annotated, list[Finding]]:
    """Write results with their trust as part files into a new folder, on either engine.

    Parameters
    ----------
    column : of times, in ms
    form : parquet or jsonl
    again : times from and to of results that the recovery yields a second time, so that the restart is looked for in
        the log's order; None: there are none

    Raises
    ------
    OutputError : the folder is there and not empty, or cannot be written
    """
    from cklog.inputs.annotate_files import new_folder

    with new_folder(target):
        return _written(results, spans, column, target, form, again, reading)


def _written(
    results: OffersResults,
    spans: Iterable[TrustInterval],
    column: str,
    target: str,
    form: str,
    again: tuple[int, int | None] | None,
    reading: Reading,
) -> tuple[Annotated, list[Finding]]:
    """Write the parts, and count what is in them; with `strict` not, if anything is damaged."""
    splits = [
        replace(split, reader="cklog.inputs.annotate:places", listed=split.bytes_listed)
        for split in results.splits(reading.split_bytes)
    ]
    engine = reading.engine_for(results.bytes)
    keys = [(split.path, split.start) for split in splits]
    parts = {key: f"part-{number:05}.{form}" for number, key in enumerate(keys)}
    writer = "cklog.parsers.results.files:write_part"
    place = Root(target).uri("")  # tasks may have another working folder
    empty = Job(writer=writer, column=column, steps=steps_of(spans), target=place, form=form, parts=parts, before={})
    job = empty if again is None else replace(empty, before=_before(engine, splits, empty, again))
    scan = Scan(
        splits=tuple(splits),
        table="places",
        columns=tuple(PLACES.names),
        kernel=functools.partial(_write, job),
        partial=COUNTS,
        reduce=None,
    )
    rows = engine.run(scan).table.to_pylist()
    trust: dict[str, int] = {name: sum(row["rows"] for row in rows if row["what"] == name) for name in TRUSTS}
    other = [row for row in rows if row["what"] not in TRUSTS]
    damage = [
        Damage(path=r["path"], id=r["what"], offset=r["offset"], detail=r["detail"], count=r["rows"])
        for r in other
        if r["what"] != UNTIMED
    ]
    findings = damage_findings(damage)
    if reading.strict:
        refuse_damage(findings)
    findings += _untimed(sum(r["rows"] for r in other if r["what"] == UNTIMED), column)
    return Annotated(target=target, form=form, parts=len(parts), rows=sum(trust.values()), trust=trust), findings


def _untimed(count: int, column: str) -> list[Finding]:
    if not count:
        return []
    called = "it is" if count == 1 else "they are"
    message = f"{many(count, 'result', 'have')} no time in {column}: {called} called indefinite"
    return [Finding("untimed-results", "warning", column, message)]


def places(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Return the place of the split itself, as one row; a `cklog.engine.scan.Reader`."""
    row = {name: getattr(split, name) for name in PLACES.names}
    yield pa.RecordBatch.from_pylist([row], schema=PLACES)


def _write(job: Job, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The kernel: write the part of each place."""
    rows = [found for place in batch.to_pylist() for found in _writer(job.writer)(job, place)]
    return pa.RecordBatch.from_pylist(rows, schema=COUNTS)


def _times(job: Job, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The kernel of the first pass: how times go in each split."""
    module, _, _ = job.writer.partition(":")
    times = _writer(f"{module}:times")
    rows = [_order(place, times(job, place)) for place in batch.to_pylist()]
    return pa.RecordBatch.from_pylist(rows, schema=ORDER)


def _order(place: Mapping[str, Any], batches: Iterable[pa.Array]) -> dict[str, Any]:
    """A row of `ORDER`; results without a time take no part, but count as rows."""
    found = dict.fromkeys(ORDER.names) | {"path": place["path"], "start": place["start"]}
    row = 0
    for times in batches:
        known = np.flatnonzero(times.is_valid().to_numpy(zero_copy_only=False))
        values = times.drop_null().to_numpy()
        if len(values):
            start = values[0] if found["highest"] is None else found["highest"]
            most = np.maximum.accumulate(np.concatenate([[start], values]))
            down = np.flatnonzero(values < most[:-1])
            if len(down) and found["falls"] is None:
                at = int(down[0])
                found |= {"falls": row + int(known[at]), "to": int(values[at]), "under": int(most[at])}
            if found["first"] is None:
                found |= {"first": int(values[0]), "untimed": row + int(known[0])}
            found["highest"] = int(most[-1])
        row += len(times)
    return found


def _before(engine: Engine, splits: list[Split], job: Job, again: tuple[int, int | None]) -> dict[tuple[str, int], int]:
    """Of each split the rows before the restart: in each folder, before times step back the first time.

    A step that is not from before the end of what comes `again` back into it is no restart: files may lie in another
    order than results came. Then, and without any step, times alone tell what came after the restart.
    """
    scan = Scan(
        splits=tuple(splits),
        table="places",
        columns=tuple(PLACES.names),
        kernel=functools.partial(_times, job),
        partial=ORDER,
        reduce=None,
    )
    found = {(row["path"], row["start"]): row for row in engine.run(scan).table.to_pylist()}
    before: dict[tuple[str, int], int] = {}
    for _, keys in itertools.groupby(job.parts, key=lambda key: posixpath.dirname(key[0])):
        before |= _before_in([(key, found[key]) for key in keys], again)
    return before


def _before_in(
    rows: list[tuple[tuple[str, int], dict[str, Any]]], again: tuple[int, int | None]
) -> dict[tuple[str, int], int]:
    """The same of the splits of one folder, in order; every split behind the restart is left out."""
    before: dict[tuple[str, int], int] = {}
    highest: int | None = None
    for key, row in rows:
        if row["first"] is not None and highest is not None and row["first"] < highest:
            return before | {key: row["untimed"]} if _is_restart(row["first"], highest, again) else {}
        if row["falls"] is not None:
            under = row["under"] if highest is None else max(row["under"], highest)
            return before | {key: row["falls"]} if _is_restart(row["to"], under, again) else {}
        highest = row["highest"] if row["highest"] is not None else highest
        before[key] = -1
    return {}


def _is_restart(to: int, under: int, again: tuple[int, int | None]) -> bool:
    return again[0] <= to and (again[1] is None or under < again[1])


def _writer(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)

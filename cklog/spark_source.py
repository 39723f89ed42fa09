"""Every parser with tables as a PySpark Python Data Source: `spark.read.format("cklog.native").load(path)`.

    from cklog.spark_source import register
    register(spark)
    spark.read.format("cklog.native").option("table", "events").load("run")

A thin shell: partitions are the parser's splits, and a task reads its split by the parser's own reader, as in a scan
of cklog's (`cklog.engine`). So cklog has to be installed where the tasks run. Rows are as the reader gives them:
nothing is put in order, no copy is dropped.

Options, beside `path`:

table        which of the parser's tables; the first that it lists, if none is named
places       true: columns `_path` and `_offset` too, where each row was read
damage       skip (default): what cannot be read is left out and logged; fail: it fails the query
map          OLD=NEW, as `--map` on the command line
store.KEY    as `--store KEY=VALUE` on the command line
split_bytes  bytes of a file per task
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from cklog.engine.scan import DAMAGE_LISTED, Damage, Split, reader_of
from cklog.errors import CorruptInput, NotFound, UsageError
from cklog.inputs.offers import OffersBatches, Parser, ParserClass
from cklog.kinds.opening import PARSERS
from cklog.local_files import parse_map
from cklog.model.findings import Finding
from cklog.model.options import SPLIT_BYTES
from cklog.storage import Root
from cklog.stores.local import listed_roots, take_listed
from cklog.stores.store import handed_over, store_of, take_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
_GROUP = "cklog.parsers"
_DAMAGE = ("skip", "fail")
_STORE = "store."
_PLACES = {"_path": pa.string(), "_offset": pa.int64()}


def register(spark: SparkSession) -> tuple[str, ...]:
    """Register a data source for each parser, and return their names, sorted."""
    found = {entry.name: entry for entry in entry_points(group=_GROUP)}
    found |= {name: EntryPoint(name, value, _GROUP) for name, value in PARSERS.items()}
    parsers: dict[str, ParserClass] = {f"cklog.{name}": entry.load() for name, entry in found.items()}
    for name, parser in sorted(parsers.items()):
        spark.dataSource.register(_data_source(name, parser))
    return tuple(sorted(parsers))


class SourceTable:
    """One table of one parser below a path, as the options of a data source choose it (see the module).

    Raises
    ------
    UsageError : an option has a value that is none of its own
    """

    def __init__(self, parser: ParserClass, options: Mapping[str, str]) -> None:
        tables = parser.tables
        self.name = options.get("table", next(iter(tables)))
        if self.name not in tables:
            raise UsageError(f"table {self.name}: not one of {', '.join(tables)}")
        self.fails = options.get("damage", _DAMAGE[0]) == "fail"
        if options.get("damage", _DAMAGE[0]) not in _DAMAGE:
            raise UsageError(f"damage {options['damage']}: not one of {', '.join(_DAMAGE)}")
        if not options.get("path"):
            raise UsageError("there is no path to load")
        maps = (parse_map(options["map"]),) if "map" in options else ()
        said = tuple((key[len(_STORE) :], value) for key, value in options.items() if key.startswith(_STORE))
        places = (options["path"], *(new for _, new in maps))
        self._root = Root(options["path"], maps, store=store_of(said, places))
        self._stores = handed_over([self._root.uri(""), *(new for _, new in self._root.maps_anywhere())])
        self._listed: dict[str, bool] = {}
        self._split_bytes = _split_bytes_of(options.get("split_bytes", str(SPLIT_BYTES)))
        shown = _PLACES if options.get("places", "false").lower() == "true" else {}
        fields = [pa.field(f.name, f.type) for f in tables[self.name]]
        self.schema = pa.schema([*fields, *(pa.field(name, kind) for name, kind in shown.items())])
        self._parser = parser

    def splits(self) -> tuple[Split, ...]:
        """Return what the tasks read.

        Faults of whole files are logged, or raised as `CorruptInput`, as the option `damage` says.
        """
        self._root.require()
        if not self._parser.recognises(self._root):
            raise NotFound(f"{self._root.path}: nothing here that {self._parser.name} reads")
        parser = self._parser(self._root)
        for finding in _table_findings(parser, self.name):
            if finding.severity == "error" and self.fails:
                raise CorruptInput(finding.message)
            _LOG.warning("%s: [%s] %s", finding.severity, finding.id, finding.message)
        found = tuple(parser.splits(self.name, self._split_bytes))
        self._listed = listed_roots()
        return found

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, of the types of `schema`; damage is logged, or raised as `CorruptInput`."""
        take_over(self._stores)
        take_listed(self._listed)
        skipped = 0
        for item in reader_of(split)(split, self.name, tuple(self.schema.names)):
            if not isinstance(item, Damage):
                yield _in_types_of(item, self.schema)
                continue
            if self.fails:
                raise CorruptInput(_damage_text(item))
            skipped += item.count
            if skipped <= DAMAGE_LISTED:
                _LOG.warning("%s", _damage_text(item))
        if skipped:
            _LOG.warning("%s: %d records skipped in bytes [%d, %d)", split.path, skipped, split.start, split.end)


def _data_source(name: str, parser: ParserClass) -> Any:
    """The class that Spark wants; made here, for importing cklog must not import pyspark."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Reader(DataSourceReader):  # type: ignore[misc]
        def __init__(self, table: SourceTable) -> None:
            self.table = table

        def partitions(self) -> list[Any]:
            return [InputPartition(split) for split in self.table.splits()]

        def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
            split = partition.value  # None: Spark makes one partition of none at all
            return self.table.read(split) if split is not None else iter(())

    class Source(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> Any:
            from pyspark.sql.pandas.types import from_arrow_schema

            return from_arrow_schema(SourceTable(parser, self.options).schema)

        def reader(self, schema: Any) -> Reader:
            return Reader(SourceTable(parser, self.options))

    return Source


def _table_findings(parser: Parser, table: str) -> tuple[Finding, ...]:
    """Return what is wrong with a table's files as a whole: logs of micro-batches are judged, others say it."""
    if parser.kind == "batches":
        from cklog.runs.batches.judge import table_findings

        return table_findings(cast("OffersBatches", parser))
    return parser.findings(table)


def _in_types_of(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with columns of the schema's own types: readers may leave strings dictionary-encoded."""
    columns = [batch.column(f.name).cast(f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _damage_text(damage: Damage) -> str:
    at = "" if damage.offset is None else f" at {damage.offset}"
    return f"{damage.path}{at}: [{damage.id}] {damage.detail}"


def _split_bytes_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:20]) > 0):
        raise UsageError(f"split_bytes {text}: not a number of bytes")
    return int(text[:20])

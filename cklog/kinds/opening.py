"""PATH, opened: which runs lie there, and the parser of the one that is asked.

From the kind that a parser declares to the class that answers for it: the whole dispatch.
"""

from __future__ import annotations

import importlib
import itertools
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import KindName, OffersPartitions, Parser, ParserClass
from cklog.kinds.discovery import RunFolder, runs_below
from cklog.kinds.kind import Kind, Opened
from cklog.model.wording import first_few
from cklog.storage import Root, Tree

if TYPE_CHECKING:
    from cklog.engine.reading import Reading
    from cklog.kafka_logs.logs import PartitionLogs

PARSERS: Mapping[str, str] = {
    "native": "cklog.parsers.native.parser:Native",
    "spark-checkpoint": "cklog.parsers.spark.parser:SparkCheckpoint",
    "flink": "cklog.parsers.flink.parser:Flink",
    "kafka-streams": "cklog.parsers.kafka.streams:KafkaStreams",
    "quix-streams": "cklog.parsers.kafka.quix:QuixStreams",
    "checkmate": "cklog.parsers.checkmate.parser:CheckMate",
    "kafka": "cklog.parsers.kafka.parser:Kafka",
    "patent-store": "cklog.parsers.patent.parser:PatentStore",
    "connect": "cklog.parsers.connect.parser:Connect",
}
"""The parsers of this distribution, known without looking at installed packages; others register theirs in the
entry-point group `cklog.parsers`."""


MARKS: Mapping[str, str] = {
    "native": r"^job\.json$|(^|/)(checkpoints|channels|events|outputs|state|system)/.*\.(jsonl|parquet|log)",
    "spark-checkpoint": r"(^|/)(offsets|commits)/",
    "flink": r"(^|/)(_metadata$|chk-[0-9])",
    "kafka-streams": r"(^|/)(kafka-streams-process-metadata|\.checkpoint|rocksdb)(/|$)",
    "quix-streams": r"(^|/)[0-9]+/CURRENT$",
    "checkmate": r"(^|/)(snapshot_[0-9]+_|worker-[0-9]+-logs/)",
    "kafka": r"(^|/)[0-9]{20}\.log$",
    "patent-store": r"(^|/)CURRENT$|\.jsonl(\.[a-z0-9]+)?$",
    "connect": r"(^|/)[^/\n]*offset[^/\n]*(/[0-9]{20}\.log|\.(jsonl?|txt|dat))$|\.offsets$",
}
"""What some file is called wherever a run of a format lies, or a folder, with a slash behind it: only then is the
format's parser loaded, and asked."""


_NAMED = 8
"""Runs that a message names at the most."""


class ChosenRun(NamedTuple):
    """The parser of a run, the root that it reads below, and what to say of the choice on stderr."""

    parser: Parser
    root: Root
    note: str = ""


def runs_of(root: Root, source: str = "") -> list[RunFolder]:
    """Find every run below PATH that a parser of this distribution is sure of; `source`: of that format only.

    Raises
    ------
    NotFound : there is no such folder
    """
    root.require()
    return runs_below(root, formats_in(root.tree(), source), lambda name: parser_class(PARSERS[name]))


def formats_in(tree: Tree, source: str = "") -> list[str]:
    """Name the formats of which a run may lie among some files, by their names; `source`: that format only."""
    paths = "\n".join([*(entry.path for entry in tree.files), *(f"{folder}/" for folder in tree.folders)])
    return [name for name in PARSERS if source in ("", name) and re.search(MARKS[name], paths, re.MULTILINE)]


def choose(root: Root, source: str = "", run: str = "") -> ChosenRun:
    """Open the one run below PATH, or the one that `--run` (a folder below PATH) and `--from` (a format) name.

    Raises
    ------
    NotFound : there is none, or there are several, which are named
    UsageError : there is no such format
    """
    root.require()
    if source and source not in PARSERS:
        return ChosenRun(_registered(source)(root), root)
    found = runs_of(root, source)
    asked = [one for one in found if run in ("", one.name, f"{one.name}/")]
    asked = asked or [one for one in found if _is_cut(run, one.name)]
    if run and not asked:
        there = f"runs there: {_listed(found)}; cklog inspect lists them" if found else "no run is there"
        raise NotFound(f"--run {run}: no such run below {root.path}", there)
    if len(asked) > 1:
        message = f"{root.path}: {len(asked)} runs lie here: {_listed(asked)}"
        raise NotFound(message, "choose one with --run NAME, or make it PATH; cklog inspect lists them")
    if asked:
        above = posixpath.dirname(asked[0].folder)
        lying = sum(above in ("", one.folder) or one.folder.startswith(f"{above}/") for one in found)
        return _opened(root, asked[0], named=bool(run), alone=lying == 1)
    return _by_recognition(root, source)


def holds_run(root: Root, source: str = "", run: str = "") -> bool:
    """Return whether there is anything below PATH that could be asked; where a format or a run is named, it must be.

    Raises
    ------
    NotFound : there is no such folder
    """
    return bool(source or run or runs_of(root)) or _recognised(root) is not None


def parser_class(value: str) -> ParserClass:
    """Load a parser by module:class."""
    module, _, name = value.partition(":")
    found: ParserClass = getattr(importlib.import_module(module), name)
    return found


_CUT = re.compile(r"[0-9a-f]{8,31}|[0-9a-f]{8}[0-9a-f-]{0,27}")


def _is_cut(run: str, name: str) -> bool:
    """Whether a run is named with ids cut, as a terminal shows them.

    >>> _is_cut("a/0123abcd", "a/0123abcd0123abcd0123abcd0123abcd"), _is_cut("a/check", "a/checkpoints")
    (True, False)
    """
    asked, parts = run.rstrip("/").split("/"), name.split("/")
    pairs = list(zip(asked, parts, strict=False))
    return len(asked) == len(parts) and all(a == b or (_CUT.fullmatch(a) and b.startswith(a)) for a, b in pairs)


def _opened(root: Root, run: RunFolder, named: bool, alone: bool) -> ChosenRun:
    """The parser of a run: at PATH, as long as its format is recognised there, else at the run's own folder.

    What is read with a run lies in its own folder, or beside it if the run is `alone` in the folder above.
    """
    parser = parser_class(PARSERS[run.format])
    folder = parser.whole_of(root, run.folder) if alone else run.folder
    own = root.below(folder)
    beside = [parser_class(PARSERS[name]) for name in parser.reads_beside]
    hidden = any(other.recognises(own) and not other.recognises(root) for other in beside)
    if not named and parser.recognises(root) and not hidden:
        return ChosenRun(parser(root), root)
    note = f"the one run below PATH is {folder} ({run.format})" if folder and not named else ""
    return ChosenRun(parser(own), own, note)


def _by_recognition(root: Root, source: str) -> ChosenRun:
    """The format that `--from` names, else the first that recognises the folder, if only by the names in it."""
    if source:
        return ChosenRun(parser_class(PARSERS[source])(root), root)
    found = _recognised(root)
    if found is not None:
        return ChosenRun(found(root), root)
    raise NotFound(
        f"{root.path}: nothing here that cklog knows",
        "a run folder holds checkpoints/, a Spark checkpoint offsets/ and commits/, a Flink one chk-<n>/_metadata, "
        "a Kafka log segments of 20 digits",
    )


def _recognised(root: Root) -> ParserClass | None:
    """The first parser that recognises the folder, one of this distribution before any other; None: there is none."""
    others = (value for name, value in sorted(_entry_points().items()) if name not in PARSERS)
    for value in itertools.chain(PARSERS.values(), others):
        parser = parser_class(value)
        if parser.recognises(root):
            return parser
    return None


def _registered(source: str) -> ParserClass:
    """A parser of another distribution."""
    known = _entry_points() | dict(PARSERS)
    if source not in known:
        raise UsageError(f"--from {source}: not one of {', '.join(sorted(known))}")
    return parser_class(known[source])


def known_parsers() -> list[str]:
    """Name every format that `--from` takes."""
    return sorted(_entry_points() | dict(PARSERS))


def _entry_points() -> dict[str, str]:
    """Parsers of other distributions, by name."""
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group="cklog.parsers")}


def _listed(runs: list[RunFolder]) -> str:
    return first_few([f"{run.name} ({run.format})" for run in runs], _NAMED)


KINDS: Mapping[KindName, str] = {
    "records": "cklog.kinds.records:RecordsKind",
    "queues": "cklog.kinds.queues:QueuesKind",
    "batches": "cklog.kinds.batches:BatchesKind",
    "snapshots": "cklog.kinds.snapshots:SnapshotsKind",
    "partitions": "cklog.kinds.partitions:PartitionsKind",
    "stores": "cklog.kinds.stores:StoresKind",
    "pieces": "cklog.kinds.pieces:PiecesKind",
    "connectors": "cklog.kinds.connectors:ConnectorsKind",
}
"""The class of each kind, as module:class; loaded when a run of its kind is opened."""


def kind_of(parser: Parser, opened: Opened) -> Kind:
    """Return what answers for a parser's run.

    Raises
    ------
    UsageError : the parser, somebody's plug-in, declares no kind that there is
    """
    if parser.kind not in KINDS:
        hint = f"kinds are {', '.join(KINDS)}; see docs/parsers.md"
        raise UsageError(f"the parser {parser.name} declares the kind {parser.kind}, which there is none of", hint)
    module, _, name = KINDS[parser.kind].partition(":")
    # What a parser of this kind offers is said in cklog.inputs.offers, and the class takes just that; that a plug-in
    # keeps to it is checked by its own type checker, not here.
    made = cast("Callable[[Parser, Opened], Kind]", getattr(importlib.import_module(module), name))
    return made(parser, opened)


def logs_below(root: Root, reading: Reading) -> PartitionLogs | None:
    """Open the partitions of a folder of Kafka logs; None: it holds none."""
    from cklog.kafka_logs.logs import PartitionLogs

    parser = parser_class(PARSERS["kafka"])
    return PartitionLogs(partitions_of(parser(root)), reading) if parser.recognises(root) else None


def partitions_of(parser: Parser) -> OffersPartitions:
    """Return a parser of the kind `partitions` as what it offers: Kafka logs are opened beside runs of other kinds."""
    return cast("OffersPartitions", parser)

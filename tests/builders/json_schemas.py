"""JSON Schemas of all answers, made of the types that the façade promises for each question."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import typing_extensions
from pydantic import Field, TypeAdapter
from pydantic.config import JsonDict

from cklog.advise.delta.answer import DeltaAdvice
from cklog.advise.extent.answer import ExtentAdvice
from cklog.advise.timing.answer import TimingAdvice
from cklog.chains.model import ChainAnswer
from cklog.differences.answer import Differences
from cklog.explanations.answer import Explanations
from cklog.graphs.graph import CheckpointGraph
from cklog.impact.model import Impact
from cklog.impact.sinks.guarantees import Guarantees
from cklog.impact.sinks.model import SinkImpact
from cklog.latency.model import Latency
from cklog.model.audits import RestoredAudit
from cklog.model.checks import Verification
from cklog.model.eventual import EventualCheckpoint, Extent
from cklog.model.findings import Finding, InputUsed
from cklog.model.inspection import SeveralRuns
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Verdict
from cklog.model.zigzag import AuditResult, ZCycles
from cklog.protocols.choice.model import ProtocolAdvice
from cklog.protocols.failures_over_time import FailuresOverTime
from cklog.protocols.metrics import MeasuredInspection, RunComparison
from cklog.queues.over_time.timeline import ExtentOverTime
from cklog.render.formats import LEFT_OUT_IF_EMPTY
from cklog.report.model import Report
from cklog.retention.plan import RetentionPlan
from cklog.rounds.answer import RoundsAnswer
from cklog.rounds.sweep import SweepAnswer
from cklog.runbook.model import Runbook
from cklog.runs.batches.line import BatchesInspection
from cklog.runs.connectors.line import ConnectorsInspection
from cklog.runs.partitions.inspection import PartitionsInspection
from cklog.runs.pieces.analyses import PiecesInspection
from cklog.runs.records.inspection import RecordsInspection
from cklog.runs.snapshots.inspection import SnapshotsInspection
from cklog.runs.stores.line import StoresInspection
from cklog.simulate.cec.figures import PaperFigures
from cklog.sweep.model import ScanAnswer

RESULTS: Mapping[str, Any] = {
    "recovery-line": RecoveryLine,
    "replay": RecoveryLine,
    "runbook": Runbook,
    "verify": Verification,
    "verify-restored": RestoredAudit,
    "inspect": (
        SeveralRuns
        | RecordsInspection
        | MeasuredInspection
        | BatchesInspection
        | SnapshotsInspection
        | PartitionsInspection
        | StoresInspection
        | PiecesInspection
        | ConnectorsInspection
    ),
    "chain": ChainAnswer,
    "retention": RetentionPlan,
    "impact": Impact | None,
    "impact-sinks": SinkImpact,
    "impact-guarantee": Guarantees,
    "latency": Latency,
    "graph": CheckpointGraph,
    "audit-cic": AuditResult,
    "compare": RunComparison,
    "failures-over-time": FailuresOverTime,
    "z-cycles": ZCycles,
    "extent": Extent,
    "eventual-checkpoint": EventualCheckpoint,
    "extent-over-time": ExtentOverTime,
    "advise-extent": ExtentAdvice,
    "advise-delta": DeltaAdvice,
    "advise-timing": TimingAdvice,
    "advise-protocol": ProtocolAdvice,
    "rounds": RoundsAnswer,
    "rounds-sweep": SweepAnswer,
    "scan": ScanAnswer,
    "report": Report,
    "diff": Differences,
    "explain": Explanations,
    "simulate": {"folder": str},
    "simulate-sweep": {},
    "simulate-cec-paper": PaperFigures,
    "simulate-odysseus": {},
    "simulate-dataflow": {},
}
"""The type of each answer's result by its command; of an open object the members that are always there."""


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of a whole answer: the envelope with this command's result in it."""
    definitions: dict[str, Any] = {}
    result = RESULTS[command]
    properties = {
        "schema": {"const": f"cklog.{command}/1"},
        "tool": {
            "type": "object",
            "properties": {"name": {"const": "cklog"}, "version": {"type": "string"}},
            "required": ["name", "version"],
        },
        "inputs": _schema(tuple[InputUsed, ...], definitions),
        "verdict": _schema(Verdict, definitions),
        "findings": _schema(tuple[Finding, ...], definitions),
        "result": _open_object(result, definitions) if isinstance(result, dict) else _schema(result, definitions),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"cklog.{command}/1",
        "title": f"An answer of cklog with the schema cklog.{command}/1",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": dict(sorted(definitions.items())),
    }


def _open_object(members: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    properties = {name: _schema(kind, definitions) for name, kind in members.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; what it refers to goes into `definitions`."""
    made = TypeAdapter(_taken(kind)).json_schema(mode="serialization")
    definitions.update({name: _as_printed(value) for name, value in made.pop("$defs", {}).items()})
    printed: dict[str, Any] = _as_printed(made)
    return printed


_MAY_LACK: JsonDict = {"may_lack": True}
"""Put at members of TypedDicts that are not required: of dataclasses all are, whatever pydantic says."""


@functools.cache
def _taken(kind: Any) -> Any:
    """The same type as pydantic takes it: TypedDicts of `typing` it takes only from Python 3.12 on."""
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        members = {name: _taken(hint) for name, hint in hints.items()}
        made = typing_extensions.TypedDict(kind.__name__, members)  # type: ignore[misc]
        made.__doc__ = kind.__doc__
        return made
    parts = get_args(kind)
    if not parts or get_origin(kind) is Literal:
        return kind
    taken = tuple(map(_taken, parts))
    if get_origin(kind) is NotRequired:
        return NotRequired[Annotated[taken[0], Field(json_schema_extra=_MAY_LACK)]]
    if isinstance(kind, UnionType):
        return functools.reduce(operator.or_, taken)
    return get_origin(kind)[taken[0] if len(taken) == 1 else taken]


def _as_printed(value: Any) -> Any:
    """The schema of what is printed: `from_` is called `from`, some members are left out if they are empty."""
    if isinstance(value, list):
        return [_as_printed(one) for one in value]
    if not isinstance(value, dict):
        return value
    left_out = ("title", "default", *_MAY_LACK)
    made = {name: _as_printed(one) for name, one in value.items() if name not in left_out}
    if isinstance(made.get("properties"), dict):
        found = {name.rstrip("_"): one for name, one in value["properties"].items()}
        made["properties"] = {name: _as_printed(one) for name, one in found.items()}  # a member may be called title
        may_lack = {*LEFT_OUT_IF_EMPTY, *(name for name, one in found.items() if _MAY_LACK.items() <= one.items())}
        made["required"] = [name for name in found if name not in may_lack]
    return made

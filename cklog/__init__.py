"""cklog: where can a crashed stream-processing job restart, and why there?

    import cklog

    with cklog.open("sample_logs/uncoordinated-join") as run:
        line = run.recovery_line()
        print(line.headline)
        frame = line.to_pandas()

Every name in `__all__` is imported when it is first used, so that `import cklog` costs nothing (docs/library.md).
"""

from cklog.version import __version__

TYPE_CHECKING = False  # as `typing` has it, whose import would take longer than all of this
if TYPE_CHECKING:
    from cklog.advise.delta.answer import DeltaAdvice as DeltaAdvice
    from cklog.advise.extent.answer import ExtentAdvice as ExtentAdvice
    from cklog.advise.timing.answer import TimingAdvice as TimingAdvice
    from cklog.chains.model import ChainAnswer as ChainAnswer
    from cklog.errors import CklogError as CklogError
    from cklog.errors import CorruptInput as CorruptInput
    from cklog.errors import EngineError as EngineError
    from cklog.errors import NotFound as NotFound
    from cklog.errors import OverBudget as OverBudget
    from cklog.errors import Unreadable as Unreadable
    from cklog.errors import UsageError as UsageError
    from cklog.graphs.graph import CheckpointGraph as CheckpointGraph
    from cklog.graphs.graph import Edge as Edge
    from cklog.graphs.graph import GraphNode as GraphNode
    from cklog.graphs.graph import GraphSubtask as GraphSubtask
    from cklog.graphs.graph import Unreceived as Unreceived
    from cklog.impact.model import Impact as Impact
    from cklog.impact.sinks.guarantees import Guarantees as Guarantees
    from cklog.impact.sinks.model import SinkImpact as SinkImpact
    from cklog.latency.model import Latency as Latency
    from cklog.library.documents import ReportResult as ReportResult
    from cklog.library.documents import scan as scan
    from cklog.library.opened import CrashedRun as CrashedRun
    from cklog.library.opening import open as open
    from cklog.library.results import GraphResult as GraphResult
    from cklog.library.results import Result as Result
    from cklog.model.audits import RestoredAudit as RestoredAudit
    from cklog.model.checks import Check as Check
    from cklog.model.checks import Verification as Verification
    from cklog.model.eventual import EventualCheckpoint as EventualCheckpoint
    from cklog.model.eventual import Extent as Extent
    from cklog.model.findings import Finding as Finding
    from cklog.model.findings import InputUsed as InputUsed
    from cklog.model.findings import Where as Where
    from cklog.model.inspection import Inspection as Inspection
    from cklog.model.lines import LineEntry as LineEntry
    from cklog.model.lines import Orphans as Orphans
    from cklog.model.lines import RecoveryLine as RecoveryLine
    from cklog.model.lines import ReplayRange as ReplayRange
    from cklog.model.lines import Rollback as Rollback
    from cklog.model.lines import RollbackDistance as RollbackDistance
    from cklog.model.lines import SourceOffset as SourceOffset
    from cklog.model.names import CheckpointId as CheckpointId
    from cklog.model.recovery_time import PartRecovery as PartRecovery
    from cklog.model.recovery_time import RateUsed as RateUsed
    from cklog.model.recovery_time import RecoveryRates as RecoveryRates
    from cklog.model.recovery_time import RecoveryTime as RecoveryTime
    from cklog.model.recovery_time import Span as Span
    from cklog.model.zigzag import AuditResult as AuditResult
    from cklog.model.zigzag import UselessCheckpoint as UselessCheckpoint
    from cklog.model.zigzag import ZCycles as ZCycles
    from cklog.model.zigzag import ZigzagMessage as ZigzagMessage
    from cklog.protocols.choice.model import ProtocolAdvice as ProtocolAdvice
    from cklog.protocols.failures_over_time import FailuresOverTime as FailuresOverTime
    from cklog.protocols.metrics import RunComparison as RunComparison
    from cklog.queues.over_time.timeline import ExtentOverTime as ExtentOverTime
    from cklog.report.model import Report as Report
    from cklog.retention.plan import LogTrim as LogTrim
    from cklog.retention.plan import RetentionPlan as RetentionPlan
    from cklog.retention.plan import RetentionRow as RetentionRow
    from cklog.rounds.answer import RoundsAnswer as RoundsAnswer
    from cklog.rounds.sweep import SweepAnswer as SweepAnswer
    from cklog.runbook.model import Runbook as Runbook
    from cklog.spark_source import register as register
    from cklog.sweep.model import ScanAnswer as ScanAnswer
    from cklog.sweep.model import ScannedRun as ScannedRun
else:

    def __getattr__(name: str) -> object:
        """Import what is public, and keep it."""
        if name not in _PLACES:
            raise AttributeError(f"module 'cklog' has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_PLACES[name]), name)
        return found


def __dir__() -> list[str]:
    """List what is public, whether it was imported or not."""
    return sorted({*globals(), *__all__})


__all__ = [
    "AuditResult",
    "ChainAnswer",
    "Check",
    "CheckpointGraph",
    "CheckpointId",
    "CklogError",
    "CorruptInput",
    "CrashedRun",
    "DeltaAdvice",
    "Edge",
    "EngineError",
    "EventualCheckpoint",
    "Extent",
    "ExtentAdvice",
    "ExtentOverTime",
    "FailuresOverTime",
    "Finding",
    "GraphNode",
    "GraphResult",
    "GraphSubtask",
    "Guarantees",
    "Impact",
    "InputUsed",
    "Inspection",
    "Latency",
    "LineEntry",
    "LogTrim",
    "NotFound",
    "Orphans",
    "OverBudget",
    "PartRecovery",
    "ProtocolAdvice",
    "RateUsed",
    "RecoveryLine",
    "RecoveryRates",
    "RecoveryTime",
    "ReplayRange",
    "Report",
    "ReportResult",
    "RestoredAudit",
    "Result",
    "RetentionPlan",
    "RetentionRow",
    "Rollback",
    "RollbackDistance",
    "RoundsAnswer",
    "RunComparison",
    "Runbook",
    "ScanAnswer",
    "ScannedRun",
    "SinkImpact",
    "SourceOffset",
    "Span",
    "SweepAnswer",
    "TimingAdvice",
    "Unreadable",
    "Unreceived",
    "UsageError",
    "UselessCheckpoint",
    "Verification",
    "Where",
    "ZCycles",
    "ZigzagMessage",
    "__version__",
    "open",
    "register",
    "scan",
]

_PLACES = {
    "AuditResult": "cklog.model.zigzag",
    "ChainAnswer": "cklog.chains.model",
    "Check": "cklog.model.checks",
    "CheckpointGraph": "cklog.graphs.graph",
    "CheckpointId": "cklog.model.names",
    "CklogError": "cklog.errors",
    "CorruptInput": "cklog.errors",
    "CrashedRun": "cklog.library.opened",
    "DeltaAdvice": "cklog.advise.delta.answer",
    "Edge": "cklog.graphs.graph",
    "EngineError": "cklog.errors",
    "EventualCheckpoint": "cklog.model.eventual",
    "Extent": "cklog.model.eventual",
    "ExtentAdvice": "cklog.advise.extent.answer",
    "ExtentOverTime": "cklog.queues.over_time.timeline",
    "FailuresOverTime": "cklog.protocols.failures_over_time",
    "Finding": "cklog.model.findings",
    "GraphNode": "cklog.graphs.graph",
    "GraphResult": "cklog.library.results",
    "GraphSubtask": "cklog.graphs.graph",
    "Guarantees": "cklog.impact.sinks.guarantees",
    "Impact": "cklog.impact.model",
    "InputUsed": "cklog.model.findings",
    "Inspection": "cklog.model.inspection",
    "Latency": "cklog.latency.model",
    "LineEntry": "cklog.model.lines",
    "LogTrim": "cklog.retention.plan",
    "NotFound": "cklog.errors",
    "Orphans": "cklog.model.lines",
    "OverBudget": "cklog.errors",
    "PartRecovery": "cklog.model.recovery_time",
    "ProtocolAdvice": "cklog.protocols.choice.model",
    "RateUsed": "cklog.model.recovery_time",
    "RecoveryLine": "cklog.model.lines",
    "RecoveryRates": "cklog.model.recovery_time",
    "RecoveryTime": "cklog.model.recovery_time",
    "ReplayRange": "cklog.model.lines",
    "Report": "cklog.report.model",
    "ReportResult": "cklog.library.documents",
    "RestoredAudit": "cklog.model.audits",
    "Result": "cklog.library.results",
    "RetentionPlan": "cklog.retention.plan",
    "RetentionRow": "cklog.retention.plan",
    "Rollback": "cklog.model.lines",
    "RollbackDistance": "cklog.model.lines",
    "RoundsAnswer": "cklog.rounds.answer",
    "Runbook": "cklog.runbook.model",
    "RunComparison": "cklog.protocols.metrics",
    "ScanAnswer": "cklog.sweep.model",
    "ScannedRun": "cklog.sweep.model",
    "SinkImpact": "cklog.impact.sinks.model",
    "SourceOffset": "cklog.model.lines",
    "Span": "cklog.model.recovery_time",
    "SweepAnswer": "cklog.rounds.sweep",
    "TimingAdvice": "cklog.advise.timing.answer",
    "Unreadable": "cklog.errors",
    "Unreceived": "cklog.graphs.graph",
    "UsageError": "cklog.errors",
    "UselessCheckpoint": "cklog.model.zigzag",
    "Verification": "cklog.model.checks",
    "Where": "cklog.model.findings",
    "ZCycles": "cklog.model.zigzag",
    "ZigzagMessage": "cklog.model.zigzag",
    "open": "cklog.library.opening",
    "register": "cklog.spark_source",
    "scan": "cklog.library.documents",
}
"""The module of every public name."""

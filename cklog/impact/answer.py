"""What a crash and its recovery do to the results of a non-distributed system: the answer of `cklog impact`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cklog.engine.reading import Reading
from cklog.errors import UsageError
from cklog.impact.checkpoint import Image, StoredCheckpoints, read_images
from cklog.impact.crash import Outage, outage
from cklog.impact.dataflow import Dataflow, aligned, dataflow
from cklog.impact.elements import Elements
from cklog.impact.logs import AskedElements, ChannelLogs, LoggedElements, settled
from cklog.impact.model import RECOVERIES, BoundedTime, Impact, OutputImpact, RecoveryClass
from cklog.impact.output import CrashRecovery, converged, output_impact
from cklog.impact.recovery import RecoveryMeans, recovery_tasks, supported
from cklog.impact.system import Logbook, SystemLog, logbook
from cklog.inputs.offers import OffersRecords
from cklog.model.findings import Finding
from cklog.model.names import parse_channel
from cklog.model.values import is_integer
from cklog.model.verdict import Draft

UNKNOWN_CHECKPOINT = "unknown"


@dataclass(frozen=True, slots=True)
class ImpactQuestion:
    """What `cklog impact` is asked of a system on one machine.

    `crash`, `restart` : in ms, None: as logged
    `recovery` : "": the strongest class that the evidence supports
    `checkpoint` : in ms; `UNKNOWN_CHECKPOINT`: only its period is known; None: as logged
    """

    crash: int | None = None
    restart: int | None = None
    recovery: RecoveryClass | str = ""
    checkpoint: int | str | None = None


@dataclass(frozen=True, slots=True)
class _Evidence:
    """All that is read once, before anybody asks for elements of the sources."""

    flow: Dataflow
    outage: Outage
    book: Logbook
    images: StoredCheckpoints
    manifest: Mapping[str, Any]
    asked: ImpactQuestion

    def image(self, recovery: RecoveryClass) -> Image | None:
        """Return the checkpoint that a recovery class goes back to: the newest, or the newest with all states."""
        asked = self.asked.checkpoint
        if recovery == "gap" or asked == UNKNOWN_CHECKPOINT:
            return None
        until = asked if isinstance(asked, int) else self.outage.crash.most
        with_states = recovery in ("rollback", "precise")
        found = self.images.newest(until, [o.name for o in self.flow.operators.values() if o.stateful and with_states])
        return found if found is None or asked is None or found.time == asked else None


def impact_answer(
    tables: OffersRecords, reading: Reading, log: SystemLog, asked: ImpactQuestion
) -> Draft[Impact | None]:
    """Find the phases, the trust and the guarantees of every output, and the recovery tasks.

    Raises
    ------
    NotFound : there is no evidence of a crash, or no dataflow
    UsageError : no such recovery class, or times that contradict each other
    """
    if asked.recovery and asked.recovery not in RECOVERIES:
        raise UsageError(f"--recovery {asked.recovery}: not one of {', '.join(RECOVERIES)}")
    flow, findings = dataflow(tables.manifest)
    images = read_images(tables, reading, flow)
    findings += [*log.findings, *images.findings]
    inputs = [*images.inputs, *log.inputs]
    found = outage(log, tables.manifest, asked.crash, asked.restart, images.times)
    if found is None:
        return Draft("impact", None, findings, inputs, indeterminate=True)
    book = logbook(found.before)
    evidence = _Evidence(
        flow=aligned(flow, book.starts),
        outage=found,
        book=book,
        images=images,
        manifest=tables.manifest,
        asked=asked,
    )
    logs = ChannelLogs(tables, reading, _elements_in_checkpoints(images))
    result = settled(logs, _first_asked(found), flow.periods, lambda elements: _impact_given(evidence, elements))
    findings += [*found.findings, *logs.findings, *_unsupported_class(result, asked), *_unknown_checkpoint(result)]
    inputs = [*inputs, *logs.inputs]
    return Draft("impact", result, findings, inputs, indeterminate=_is_bound(result, log))


def _elements_in_checkpoints(images: StoredCheckpoints) -> dict[str, tuple[tuple[int, int], ...]]:
    """By source, as (time, number) of each checkpoint: the elements below `number` came before `time`."""
    found: dict[str, list[tuple[int, int]]] = {}
    for image in images.images:
        for name, number in image.positions.items():
            if image.time is not None:
                found.setdefault(name, []).append((image.time, number))
    return {name: tuple(sorted(pairs)) for name, pairs in found.items()}


def _first_asked(found: Outage) -> AskedElements:
    """What is asked of the logs in any case: the elements around the crash and the restart."""
    moments = {found.crash.least, found.crash.most}
    return AskedElements(moments if found.restart is None else moments | {found.restart})


def _impact_given(evidence: _Evidence, elements: Mapping[str, Elements]) -> Impact:
    """The answer for one state of knowledge about the elements of the sources."""
    found, flow, gone = evidence.outage, evidence.flow, evidence.book.removed
    images = {recovery: evidence.image(recovery) for recovery in RECOVERIES}
    means = RecoveryMeans(
        images=images,
        elements=elements,
        retained=_first_retained(evidence.manifest),
        outage=found,
        book=evidence.book,
    )
    wanted = [name for name in flow.outputs if (flow.operators[name].query or name) not in gone]
    outputs = tuple(_output_impact(evidence, name, means) for name in wanted)
    strongest: RecoveryClass = max((output.recovery for output in outputs), key=RECOVERIES.index, default="gap")
    checkpoint = _checkpoint_time(evidence, strongest, means)
    at = checkpoint.least if checkpoint is not None and checkpoint.exact else None
    return Impact(
        crash=found.crash,
        restart=found.restart,
        checkpoint=checkpoint,
        outputs=outputs,
        tasks=recovery_tasks(flow, means, strongest, at, outputs),
        notes=tuple(f"query {name} was removed before the crash: it does not come back" for name in sorted(gone)),
    )


def _output_impact(evidence: _Evidence, name: str, means: RecoveryMeans) -> OutputImpact:
    """What an output suffers under the recovery class asked for, else the strongest that the evidence supports."""
    flow, elements = evidence.flow, means.elements
    stateless = converged(flow, name, elements, _crash_recovery(evidence, "stateless-rollback", means))
    classes = supported(flow, name, means, stateless.kind)
    strongest = [support.recovery for support in classes if not support.missing][-1]
    chosen = next((name for name in RECOVERIES if name == evidence.asked.recovery), strongest)
    return output_impact(flow, name, elements, _crash_recovery(evidence, chosen, means), classes)


def _crash_recovery(evidence: _Evidence, recovery: RecoveryClass, means: RecoveryMeans) -> CrashRecovery:
    found = evidence.outage
    return CrashRecovery(recovery, found.crash, found.restart, _checkpoint_time(evidence, recovery, means))


def _checkpoint_time(evidence: _Evidence, recovery: RecoveryClass, means: RecoveryMeans) -> BoundedTime | None:
    """When the checkpoint was: by the first element to send again, by its record, or within a period."""
    asked, crash = evidence.asked.checkpoint, evidence.outage.crash
    image, elements = means.images[recovery], means.elements
    if recovery == "gap":
        return None
    if isinstance(asked, int):
        return BoundedTime(asked, asked, "--checkpoint")
    if image is not None and image.time is not None:
        logged = {name: e for name, e in elements.items() if isinstance(e, LoggedElements) and name in image.positions}
        times = [e.time_of(image.positions[name]) for name, e in logged.items()]
        known = [time for time in times if time is not None]
        time = min(known) if known and len(known) == len(elements) else image.time
        return BoundedTime(time, time, f"checkpoint {image.number}")
    period = evidence.manifest.get("checkpoint_interval_ms")
    if is_integer(period) and period > 0:
        return BoundedTime(crash.least - period, crash.most, "checkpoint_interval_ms in job.json")
    boots = [event.time for event in evidence.outage.before if event.event == "boot" and event.time is not None]
    return BoundedTime(min(boots[0], crash.least), crash.most, "boot") if boots else None


def _first_retained(manifest: Mapping[str, Any]) -> dict[str, int]:
    """The first element that is kept of each source, where the manifest says so."""
    found: dict[str, int] = {}
    for row in manifest.get("channels", []):
        channel = parse_channel(row["channel"])
        if channel is not None and row.get("first_retained") is not None:
            name = channel.sender.operator
            found[name] = max(found.get(name, 0), row["first_retained"])
    return found


def _unsupported_class(result: Impact, asked: ImpactQuestion) -> list[Finding]:
    """Findings about what a recovery class that was asked for lacks."""
    if not asked.recovery:
        return []
    found = []
    for output in result.outputs:
        support = next(c for c in output.classes if c.recovery == output.recovery)
        if support.missing:
            message = (
                f"{output.output}: {output.recovery} recovery lacks {' and '.join(support.missing)}. The phases shown "
                "are those that it would have"
            )
            found.append(Finding("missing-piece", "error", output.output, message, effect="none"))
    return found


def _unknown_checkpoint(result: Impact) -> list[Finding]:
    """A finding about a checkpoint that is known within bounds only, where the answer rests on it."""
    at = result.checkpoint
    if not _any_replays(result) or at is None or at.exact:
        return []
    message = (
        f"the time of the checkpoint is not known: between {at.least} and {at.most} ms by {at.source}; counts are "
        "bounds"
    )
    return [Finding("checkpoint-unknown", "warning", "checkpoints/", message)]


def _any_replays(result: Impact) -> bool:
    """Whether any output's results depend on where its replay starts."""
    return any(output.recovery not in ("gap", "precise") for output in result.outputs)


def _is_bound(result: Impact, log: SystemLog) -> bool:
    """Whether the answer is a bound, because evidence is missing."""
    at = result.checkpoint
    unknown = any(output.convergence == "unknown" for output in result.outputs)
    inexact = _any_replays(result) and (at is None or not at.exact)
    return not result.crash.exact or inexact or unknown or log.damaged

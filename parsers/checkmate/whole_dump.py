"""What names, numbers and counters tell of a dump as a whole: what was inferred, what is missing, what came before."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from cklog.model.findings import Finding, Severity, Where
from cklog.model.names import parse_channel
from cklog.model.wording import first_few, many
from cklog.parsers.checkmate.dump import (
    Dump,
    apart,
    missing_of_rounds,
    read_turns,
    sent_by,
)
from cklog.parsers.checkmate.names import ROUND_BELOW, Deployment, endings
from cklog.progress import portion, stage
from cklog.storage import Root

_PLACES = 100
"""Places that one finding lists at the most."""

_DEPLOYMENTS, _UNSEEN = 3, 1_000
"""Deployments, and channels, that a finding names; channels without a log that are counted at the most."""


def assumed_partitions(dump: Dump) -> Iterable[Finding]:
    """Report what is not written down anywhere, and what it was taken to be."""
    deployment = dump.deployment
    counts = {operator: deployment.count(operator) for operator in deployment.operators}
    listed = ", ".join(f"{operator} {count}" for operator, count in counts.items())
    workers = len(deployment.workers)
    each = {divmod(count, max(workers, 1)) for count in counts.values()}
    whole, rest = each.pop() if len(each) == 1 else (0, 1)
    everywhere = f"each of the {workers} workers" if workers > 1 else "the one worker"
    taken = f"spread over the {workers} workers" if rest else f"{'one' if whole == 1 else whole} on {everywhere}"
    by = "as the log folders have it" if dump.logs else "as their channels are numbered"
    message = (
        f"nothing here says how many partitions an operator has or where they run: taken as {taken}, "
        f"{by if deployment.hosts else 'in their order'} (partitions: {listed}); a subtask is an operator's part on "
        "one worker, by the worker's number"
    )
    severity: Severity = "warning" if deployment.others or not deployment.fits else "info"
    yield Finding("assumed-partitions", severity, dump.folder or ".", "; ".join([message, *_doubts(dump)]))


def _doubts(dump: Dump) -> Iterable[str]:
    """Say what else the channels' names may mean, and which channels would be there and are not."""
    deployment = dump.deployment
    if deployment.others:
        others = [
            f"{many(len(w), 'worker')} with {many(count, 'partition')} of each operator"
            for w, count in deployment.others
        ]
        yield (
            f"the names fit other deployments as well ({first_few(others, _DEPLOYMENTS)}): if one of those is true, "
            "there are other workers or channels than this answer knows"
        )
    unseen = [*islice(deployment.unseen(), _UNSEEN)] if dump.logs else []
    if unseen:
        count = f"{_UNSEEN} or more" if len(unseen) == _UNSEEN else str(len(unseen))
        among = f"{count} logs that there would be are missing, {', '.join(unseen[:_DEPLOYMENTS])} among them"
        yield f"the log of {unseen[0]}, which there would be, is missing" if len(unseen) == 1 else among
    if not deployment.fits:
        why = "because logs are missing" if unseen else "which some channels contradict"
        yield f"the names of the channels here prove no deployment, {why}: what was taken is a guess"


def missing_snapshots(dump: Dump) -> Iterable[Finding]:
    """Report snapshots that should be there: lost ones, and those whose upload may not have ended."""
    for gone in (*dump.missing, *missing_of_rounds(snapshot for unit in dump.units for _, snapshot in unit.snapshots)):
        name = f"snapshot_{gone.worker}_{gone.operator}_{gone.stamp}.bin"
        subject = f"{dump.folder}/{name}" if dump.folder else name
        if gone.newest:
            message = f"{subject} is not here: its upload had not ended, or failed, or it is lost; older ones are used"
            yield Finding("unfinished-upload", "warning", subject, message, effect="older-line")
            continue
        others = f"others have that of round {gone.stamp}, and of newer ones"
        if gone.stamp >= ROUND_BELOW:
            others = f"worker {gone.worker} has others of that moment; what it had received is lost"
        message = f"{subject} is missing: {others}"
        yield Finding("missing-file", "error", subject, message, effect="older-line")


def assumed_complete(dump: Dump) -> Iterable[Finding]:
    """Report that a snapshot could be missing and nothing would show it."""
    workers = apart(snapshot for unit in dump.units for _, snapshot in unit.snapshots)
    if workers:
        who = f"worker {workers[0]}" if len(workers) == 1 else f"{len(workers)} workers"
        message = (
            f"the operators of {who} take snapshots each at a moment of its own, and nothing numbers them: if one is "
            "missing, what it had received is lost, and a line behind it is too new. Compare the folder with the bucket"
        )
        yield Finding("assumed-complete", "info", dump.folder or ".", message)


def unseen_units(dump: Dump) -> Iterable[Finding]:
    """Report units that never left a snapshot: without them, coordinated rounds look complete."""
    if not any(s.stamp < ROUND_BELOW for unit in dump.units for _, s in unit.snapshots):
        return
    seen = {(unit.operator, unit.worker) for unit in dump.units}
    named = {name for name in map(dump.deployment.channel, {log.channel for log in dump.logs}) if name}
    for channel in filter(None, map(parse_channel, named)):
        seen |= {(end.operator, end.subtask) for end in (channel.sender, channel.receiver)}
    for operator in dump.deployment.operators:
        for worker in dump.deployment.workers:
            if (operator, worker) not in seen:
                message = f"worker {worker} left nothing of {operator}: if that runs there, no round is complete"
                yield Finding("unit-without-snapshots", "warning", f"{operator}/{worker}", message)


def unreadable_channels(dump: Dump) -> Iterable[Finding]:
    """Report logs whose names do not tell their channel."""
    for log in dump.logs:
        if dump.deployment.channel(log.channel) is None:
            message = f"{log.path}: {why_no_channel(dump.deployment, log.channel)}"
            yield Finding("ambiguous-channel", "error", log.path, message, effect="unknown")


def why_no_channel(deployment: Deployment, channel: str) -> str:
    """Say why a channel's name cannot be read."""
    ends = endings(channel, deployment.operators)
    if ends is None:
        return f"channel {channel} fits no one pair of the operators {', '.join(deployment.operators)}"
    counts = f"{deployment.count(ends.sender)} × {deployment.count(ends.receiver)}"
    return f"channel {channel} has a number beyond the {counts} partitions that its operators are taken to have"


def emptied_logs(root: Root, dump: Dump) -> Iterable[Finding]:
    """Report logs without a byte of channels on which snapshots say that messages were sent: each is logged first."""
    empty = [log for log in dump.logs if not log.size and not log.unread]
    if len(empty) == len(dump.logs):
        return  # a coordinated run: it makes the files, and logs nothing
    newest = {(unit.worker, unit.operator): unit.snapshots[-1][1] for unit in dump.units if unit.snapshots}
    sent: dict[tuple[int, str], dict[str, int]] = {}
    for log in empty:
        ends = endings(log.channel, dump.deployment.operators)
        by = (log.worker, ends.sender if ends is not None else "")
        if by in newest and by not in sent:
            sent[by] = sent_by(root, newest[by])
        count = sent.get(by, {}).get(log.channel, 0)
        if count > 0:
            message = (
                f"{log.path} holds nothing, though {newest[by].path} says that {count} messages were sent: written but "
                "never filled, or cut to 0"
            )
            yield Finding("empty-file", "warning", log.path, message, where=(Where(log.path),))


def earlier_recoveries(root: Root, dump: Dump) -> Iterable[Finding]:
    """Report if the job has recovered before: then there are undone messages, and undone snapshots, here."""
    found = []
    with stage("looking for recoveries", "bytes", size := sum(log.size for log in dump.logs), size=size):
        for sent in dump.logs:
            if sent.size:
                with portion(sent.size):
                    found.append((sent.path, read_turns(root.uri(sent.path), sent.path)))
    late = [(path, turns) for path, turns in found if turns and (len(turns) > 1 or turns[0].counter > 0)]
    if not late:
        return
    path, turns = late[0]
    first = next((turn for turn in turns if turn.counter > 0), turns[-1])
    message = (
        f"the job has recovered before: {many(len(late), 'log', 'hold')} messages sent after a recovery, {path} "
        f"from message {first.number} on (recovery {first.counter}). Messages before that, and snapshots, may be of a "
        "timeline that the recovery undid; nothing marks such snapshots, and they are used like the others. If the "
        "coordinator's log names the line of that recovery, move the snapshots between it and the recovery out of a "
        "copy"
    )
    places: list[Where] = []
    for log, turns in late:
        places += [Where(log, turn.at) for turn in turns if turn.counter > 0]
    yield Finding("dead-timeline", "warning", path, message, where=tuple(places[:_PLACES]))

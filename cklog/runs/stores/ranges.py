"""What the stores of a task read again: first by the task's own files, then inside the changelogs as they are now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from cklog.inputs.stores import GLOBAL, StoreOffset, StoreRestore, StoreTask
from cklog.model.findings import Finding, Severity, Where
from cklog.model.unchecked import Unchecked
from cklog.model.wording import first_few, many

_CHANGELOG = "-changelog"


def of_task(
    task: StoreTask, damaged: bool, unjudged: bool
) -> tuple[list[tuple[StoreRestore, StoreOffset | None]], list[Finding]]:
    """Say what the stores of a task read again, by the task's own files and what stores keep inside.

    A file of the task is taken over by the stores when the task starts, so that its entries count where both speak.
    `unjudged`: such a file was not read, or not understood, so that nothing is known of any store of the task.
    """
    sizes = dict(task.stores)
    if unjudged:
        return [(_unknown(task, store, size), None) for store, size in task.stores], []
    unread = {inside.store for inside in task.inside if inside.unread}
    told = [inside for inside in task.inside if not inside.unread and task.system == "kafka-streams"]
    unclean = {inside.store: inside.unclean for inside in told}
    written = {(entry.topic, entry.partition) for entry in task.entries or ()}
    kept = [
        entry for inside in task.inside for entry in inside.offsets if (entry.topic, entry.partition) not in written
    ]
    entries = [*(task.entries or ()), *kept]
    findings = [*_unclean_stores(task, [store for store, open_ in unclean.items() if open_])]
    found: list[tuple[StoreRestore, StoreOffset | None]] = []
    found += [(_unknown(task, store, sizes.get(store, 0)), None) for store in sorted(unread)]
    named = set(unread)
    mine = [entry for entry in entries if task.group == GLOBAL or entry.partition == task.partition]
    findings += [_foreign(task, entry) for entry in entries if entry not in mine]
    for entry in mine:
        store = _store_of(task, entry)
        if store in unread:
            continue
        named |= {store} if store else set()
        restore = _restore(task, entry, store, sizes.get(store or ""))
        found.append((replace(restore, unclean=unclean.get(store or "")), entry))
    unnamed = [store for store in sizes if store not in named]
    perhaps = bool(unnamed or unread)  # one of them may be restored from a source topic
    if task.entries is None and not entries and not unread:
        missing = [] if damaged or not sizes else [_no_checkpoint(task)]
        return [(_whole(task, store, size), None) for store, size in task.stores], [*findings, *missing]
    for entry in mine:
        store = _store_of(task, entry)
        if store is None and entry.offset is not None and not (perhaps and not entry.topic.endswith(_CHANGELOG)):
            findings.append(_no_store(task, entry, "no store of that name is here"))
        elif store in task.empty and entry.offset is not None:
            findings.append(_no_store(task, entry, f"the folder of store {store} holds no database"))
    sourced = sum(not e.topic.endswith(_CHANGELOG) for e in mine)
    if task.group != GLOBAL and len(unnamed) > sourced:
        findings += [_no_entry(task, store) for store in unnamed]
        found += [(_whole(task, store, sizes[store]), None) for store in unnamed]
    return found, findings


def _store_of(task: StoreTask, entry: StoreOffset) -> str | None:
    """The store that an entry is of: the one that keeps it, or the longest name that the changelog's name ends with."""
    if entry.store is not None:
        return entry.store
    if not entry.topic.endswith(_CHANGELOG):
        return None
    names = {*dict(task.stores), *task.folders}
    fitting = [name for name in names if entry.topic.endswith(f"-{name}{_CHANGELOG}")]
    return max(fitting, key=len, default=None)


def _restore(task: StoreTask, entry: StoreOffset, store: str | None, size: int | None) -> StoreRestore:
    """From behind the last applied record, which Quix Streams reads again; a global store's offset is the next one."""
    if entry.offset is None:
        return _from_beginning(task, store, entry.name, size)
    start = entry.offset if task.group == GLOBAL or task.system == "quix-streams" else entry.offset + 1
    return StoreRestore(
        task=task.name,
        store=store,
        changelog=entry.name,
        start="checkpoint",
        restore_from=start,
        restore_to=None,
        records=None,
        bytes=None,
        store_bytes=size,
    )


def _whole(task: StoreTask, store: str, size: int) -> StoreRestore:
    """A store that begins anew; its changelog is named by the rule, unless a source topic serves as such."""
    lead = f"{task.application}-{task.topology}-" if task.topology else f"{task.application}-"
    name = "?" if task.group == GLOBAL else f"{lead}{store}{_CHANGELOG}-{task.partition}"
    return _from_beginning(task, store, name, size)


def _unknown(task: StoreTask, store: str, size: int) -> StoreRestore:
    """A store whose offset could not be read."""
    return replace(_whole(task, store, size), start="unknown")


def _from_beginning(task: StoreTask, store: str | None, changelog: str, size: int | None) -> StoreRestore:
    """A store that the whole changelog is read for."""
    return StoreRestore(
        task=task.name,
        store=store,
        changelog=changelog,
        start="beginning",
        restore_from=None,
        restore_to=None,
        records=None,
        bytes=None,
        store_bytes=size,
    )


def fitted(
    task: StoreTask, restore: StoreRestore, entry: StoreOffset | None, log_start: int, log_end: int
) -> tuple[StoreRestore, list[Finding]]:
    """Fit the range into the log, which may have lost its beginning (retention) or its end (a restart)."""
    start = restore.restore_from
    where = (_place(task, entry),) if entry is not None else ()
    if start is None:
        return replace(restore, restore_from=log_start, restore_to=log_end), []
    if task.system == "quix-streams":
        return _fitted_quix(task, restore, start, log_start, log_end, (Where(task.folder_of(restore.store)),))
    if start < log_start:
        told = (
            f"{restore.changelog} begins at offset {log_start}, task {task.name} goes on at {start}: out of range; "
            "the store is restored from the changelog's beginning (under exactly-once the whole task is). Compaction "
            "alone never moves the start of a log: retention or kafka-delete-records.sh deleted the records before it. "
            "State that was written only there is lost, windows past their retention aside"
        )
        moved = replace(restore, start="beginning", restore_from=log_start, restore_to=log_end)
        return moved, [Finding("store-below-log", "warning", restore.changelog, told, where, effect="unknown")]
    if start > log_end:
        told = (
            f"{restore.changelog} ends at offset {log_end}, a store of task {task.name} holds it to {start}: the log "
            "was cut. An active task takes its store for restored, with what the log no longer has; a standby "
            "begins anew. Delete the task's folder, so that all copies are restored from the log"
        )
        found = Finding(
            id="store-beyond-log",
            severity="error",
            subject=restore.changelog,
            message=told,
            where=where,
            effect="data-lost",
        )
        return replace(restore, restore_to=log_end), [found]
    return replace(restore, restore_to=log_end), []


def unchecked_stores(application: str, restores: Iterable[StoreRestore]) -> list[Unchecked]:
    """Return the stores that resume from an offset: cklog does not compare their contents with it."""
    sized = [r for r in restores if r.start == "checkpoint" and r.store_bytes is not None]
    if not sized:
        return []
    least = min(sized, key=lambda r: r.store_bytes or 0)
    small = f"{many(least.store_bytes or 0, 'byte')} on disk for offsets up to {least.restore_from}"
    if len(sized) == 1:
        claim = f"store {least.store} has all updates up to its offset ({small})"
    else:
        claim = (
            f"{len(sized)} stores have all updates up to their offsets (the smallest, {least.store} of {least.task}: "
            f"{small})"
        )
    return [Unchecked("state", application, claim)]


def _place(task: StoreTask, entry: StoreOffset) -> Where:
    """Where an entry is written; in a store there is no byte to look at."""
    return Where(entry.file) if entry.file and entry.store else Where(entry.file or task.file, entry.at)


def _unclean_stores(task: StoreTask, stores: list[str]) -> list[Finding]:
    if not stores:
        return []
    were = "was" if len(stores) == 1 else "were"
    told = (
        f"{', '.join(stores)} of task {task.name} {were} open when the instance ended. With at-least-once every store "
        "goes on from its offset; with exactly-once (processing.guarantee) Kafka Streams wipes all stores of the task "
        "when it starts, and restores them from the beginning of their changelogs"
    )
    where = tuple(Where(f"{task.path}/rocksdb/{store}") for store in stores)
    return [Finding(id="unclean-store", severity="warning", subject=task.name, message=told, where=where)]


def unread_stores(tasks: Iterable[StoreTask]) -> list[Finding]:
    """Report the stores whose offsets could not be read, once for each reason."""
    why: dict[str, list[str]] = {}
    for task in tasks:
        for inside in task.inside:
            if inside.unread:
                between = "/rocksdb" if task.system == "kafka-streams" else ""
                beneath = f"/{task.group}/{task.partition}" if task.system == "quix-streams" else ""
                why.setdefault(inside.unread, []).append(f"{task.path}{between}/{inside.store}{beneath}")
    found = []
    for reason, places in sorted(why.items()):
        told = (
            f"the offsets of {many(len(places), 'store')} lie inside RocksDB and were not read: {reason}. What these "
            "stores read again is not known"
        )
        where = tuple(Where(place) for place in places)
        found.append(
            Finding(id="unread-store", severity="error", subject=places[0], message=told, where=where, effect="unknown")
        )
    return found


def _fitted_quix(
    task: StoreTask, restore: StoreRestore, start: int, log_start: int, log_end: int, where: tuple[Where, ...]
) -> tuple[StoreRestore, list[Finding]]:
    """Fit what Quix Streams reads again: from its last record on, and nothing if that is the changelog's last."""
    if start >= log_end > 0:
        told = (
            f"{restore.changelog} ends at offset {log_end}, a store of {task.name} holds it to {start}: Quix Streams "
            "refuses to start (InvalidStoreChangelogOffset). Delete the store's folder, so that it is restored"
        )
        found = Finding("store-beyond-log", "error", restore.changelog, told, where, effect="restart-fails")
        return replace(restore, restore_from=start + 1, restore_to=log_end), [found]
    if start < log_start:
        told = (
            f"{restore.changelog} begins at offset {log_start}, a store of {task.name} goes on at {start}: out of "
            "range, and auto.offset.reset decides what is read. Delete the store's folder, so that it is restored"
        )
        moved = replace(restore, start="unknown", restore_from=None, restore_to=log_end)
        return moved, [Finding("store-below-log", "error", restore.changelog, told, where, effect="data-lost")]
    return replace(
        restore, restore_from=min(start, log_end) if start + 1 < log_end else log_end, restore_to=log_end
    ), []


def _no_checkpoint(task: StoreTask) -> Finding:
    told = (
        f"task {task.name} has stores and no {task.file}: they are restored from the beginning of their changelogs, "
        "and wiped first under exactly-once (which leaves no file in a crash)"
    )
    return Finding(
        id="no-store-checkpoint", severity="warning", subject=task.path, message=told, where=(Where(task.file),)
    )


def _no_entry(task: StoreTask, store: str) -> Finding:
    told = (
        f"store {store} of task {task.name} has no entry in {task.file}: it is not logged, or restored from the "
        "beginning of its changelog (under exactly-once all stores of the task are wiped then)"
    )
    return Finding(
        id="store-without-entry",
        severity="warning",
        subject=f"{task.path}/rocksdb/{store}",
        message=told,
        where=(Where(task.file),),
    )


def _foreign(task: StoreTask, entry: StoreOffset) -> Finding:
    file = entry.file or task.file
    told = (
        f"{file} has {entry.name}, which is no partition of task {task.name}: the entry is ignored. Was the file "
        "copied from another task?"
    )
    return Finding(
        id="corrupt-file",
        severity="warning",
        subject=file,
        message=told,
        where=(_place(task, entry),),
    )


def _no_store(task: StoreTask, entry: StoreOffset, why: str) -> Finding:
    told = (
        f"{entry.file or task.file} has {entry.name} at offset {entry.offset}, and {why}: its store begins empty and "
        "is restored from that offset on only, without what came before. Delete the file before a restart"
    )
    return Finding(
        id="entry-without-store",
        severity="error",
        subject=entry.name,
        message=told,
        where=(_place(task, entry),),
        effect="data-lost",
    )


def no_log(task: StoreTask, restore: StoreRestore) -> list[Finding]:
    """Report a changelog that is not there: whether it reaches as far as a store needs is not known then."""
    if restore.changelog == "?":
        return []
    told = f"{restore.changelog}, which task {task.name} is restored from, is not among the logs"
    severity: Severity = "error" if restore.start == "checkpoint" else "warning"
    return [Finding("missing-changelog", severity, restore.changelog, told)]


def no_task(restored: Collection[str], known: Iterable[str]) -> list[Finding]:
    """Report partitions of changelogs of which no task is here: it runs elsewhere, or its folder is gone.

    `restored` are the partitions that tasks here are restored from, `known` those in the logs.
    """
    topics = {name.rpartition("-")[0] for name in restored}
    gone = sorted(name for name in {*known} - {*restored} if name.rpartition("-")[0] in topics)
    if not gone:
        return []
    whose = "its task runs" if len(gone) == 1 else "their tasks run"
    told = (
        f"no task here is restored from {first_few(gone, 3)}, and some are from others: {whose} in another "
        "instance, or the folder is gone and all is restored from the beginning. This answer says nothing of it"
    )
    return [Finding("missing-task", "warning", gone[0], told)]


def emptied(task: StoreTask, restore: StoreRestore) -> list[Finding]:
    """Report a changelog without a record, though a store has some; `restore` as it was before it was `fitted`."""
    if restore.start == "checkpoint":
        why = f"a store of task {task.name} holds it to offset {restore.restore_from}"
    elif restore.store_bytes:
        why = f"store {restore.store} of task {task.name} has {restore.store_bytes} bytes on disk"
    else:
        return []
    told = (
        f"{restore.changelog} holds no record, and {why}: if it was emptied or made anew, what is restored from it is "
        "empty. Compare with its other replicas before a restart"
    )
    severity: Severity = "error" if restore.start == "checkpoint" else "warning"
    return [Finding("missing-changelog", severity, restore.changelog, told)]


def begins_late(restore: StoreRestore) -> bool:
    """Return whether a store is restored as a whole from a changelog whose first records were deleted."""
    return restore.start == "beginning" and bool(restore.restore_from)


def notes(logged: bool) -> tuple[str, ...]:
    """Say what an answer about stores takes for granted; `logged`: there are changelogs."""
    note = "a task's checkpoint is the lowest next offset of its stores; stores are mostly ahead of it"
    return (note,) if logged else (note, "no changelogs are here: where they end is not known")

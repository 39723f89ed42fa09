"""Batches without a commit of which the query's sink shows that they are done: a file sink's log, or a Delta table.

Read off Spark 4.3: where commits before the newest plan are gone, or all of them, a restart runs that plan alone.
Nothing is lost then, and nothing is written twice, if the sink has these batches, and the state after the last of them
is there. With state checkpoint format 2 the restart fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cklog.inputs.batches import ListedBatches, MetadataLogs
from cklog.inputs.offers import OffersBatches
from cklog.runs.batches.facts import COPY
from cklog.runs.batches.file_sink import Lacking, older_entries
from cklog.runs.batches.targets import first_without_commit, has_state_ids, names_states, or_go_back

if TYPE_CHECKING:  # without --sink nothing of it is loaded
    from cklog.sink_tables.fitting import NamedTable


def with_done_batches(
    parser: OffersBatches, logs: MetadataLogs, tables: Sequence[NamedTable], lacking: Lacking
) -> MetadataLogs:
    """Take batches without a commit for done, where the query's sink and the state show that they are.

    `tables` : those that were named, of which the query may write some
    """
    first, last, sinks = first_without_commit(logs), logs.planned - 1, parser.sinks()
    unlike = logs.asynchronous or logs.continuous or logs.hidden
    if first > last or unlike or any(n not in logs.offsets for n in range(first, last + 1)):
        return logs
    batches = range(first, logs.planned + 1)
    found = _in_file_sink(parser, logs, sinks[0], batches) if len(sinks) == 1 else _in_tables(logs, tables, batches)
    if found is None:
        return logs
    logs = replace(logs, sink_lists=found)
    with_ids = has_state_ids(logs) and (parser.has_state or names_states(logs))
    done = found.complete and not with_ids and lacking(last + 1) == ""
    return replace(logs, shown_done=last) if done else logs


def _in_file_sink(parser: OffersBatches, logs: MetadataLogs, sink: str, batches: range) -> ListedBatches | None:
    """Return which batches the log of a file sink lists; None: that is not known."""
    log = parser.sink_log(sink)
    flawed = any(read.flaw is not None for read in log.reads.values())
    others = log.listing.newest > logs.planned or older_entries(log, logs)
    if flawed or others:  # then what it lists is not known, or is another query's
        return None
    base = log.listing.base
    lists = frozenset(n for n in batches if max(n, base) in log.reads)
    complete = {base, *range(base, logs.planned)} <= log.reads.keys()
    return ListedBatches("the file sink's log", lists, complete)


def _in_tables(logs: MetadataLogs, tables: Sequence[NamedTable], batches: range) -> ListedBatches | None:
    """Return which batches all Delta tables of the query have, by its id or the one that `--sink` names.

    None: no table has any, or one that lost older commits, or is damaged, may have had those that it does not show.
    """
    from cklog.sink_tables.judge import held_by
    from cklog.sink_tables.model import Restart
    from cklog.sink_tables.numbers import has

    query = logs.metadata.value if logs.metadata is not None else None
    plans = ((n, read.value.time) for n, read in sorted(logs.offsets.items()) if read.value is not None)
    began = next(((n, time) for n, time in plans if time is not None), None)
    names, lists = [], frozenset(batches)
    for one in tables:
        ids = {query, *one.known}
        writers = frozenset(w for w in one.account.writers if w.counts == "batch" and w.id in ids)
        if one.table.format != "delta" or not writers:
            continue
        restart = Restart(logs.planned - 1, "batch", frozenset({query or ""}), query or "", logs.planned, began=began)
        there = held_by(one.account, restart, writers).there
        has_them = frozenset(n for n in batches if has(there, n))
        if (one.table.expired or one.table.indeterminate) and not has_them >= {*batches[:-1]}:
            return None
        names.append(one.name)
        lists &= has_them
    named = f"the Delta table {names[0]}" if len(names) == 1 else f"each of the Delta tables {', '.join(names)}"
    return ListedBatches(named, lists, complete=lists >= {*batches[:-1]}, skips=True) if names else None


def advice_without_commits(first: int, which: str, logs: MetadataLogs) -> str:
    """Say what is lost of batches without a commit, from `first` to before the newest plan, and what to do now."""
    o, lists = logs.planned, logs.sink_lists
    if lists is None:
        return _runs_again(
            first,
            f"Results that the sink does not have yet are lost. Check whether the sink has {which}. If it has, put the "
            "commits back.",
            f"If not, {COPY}",
            f", and from a file sink's log the entries above {first}",
            logs,
        )
    by = lists.sentence_subject
    lacks = next((n for n in range(first, o) if n not in lists.batches), None)
    if lacks is None:
        return (
            f"{by} has {which}, so leave the offsets as they are. cklog has no proof that the state for batch {o} is "
            f"complete. Put the commits back from a backup{or_go_back(logs)}."
        )
    later = any(n > lacks for n in lists.batches)
    if later and lists.skips:
        return (
            f"{by} does not have batch {lacks}, but has batch {max(lists.batches)}, and skips every batch up to that. "
            f"So the results of batch {lacks} are lost: write them again by hand."
        )
    entries = f", and from the file sink's log the entries above {lacks}" if later else ""
    return _runs_again(
        lacks, f"{by} does not have batch {lacks}, so its results are lost.", COPY.capitalize(), entries, logs
    )


def _runs_again(batch: int, lost: str, how: str, entries: str, logs: MetadataLogs) -> str:
    """Say what is lost, and what to remove so that a restart runs a batch, if its start is known."""
    if batch > 0 and logs.ends(batch - 1) is None:
        before = f"{logs.offset_log.folder}/{batch - 1}"
        return f"{lost} Nothing here says where batch {batch} starts, because {before} is missing or damaged."
    return (
        f"{lost} {how} remove the offsets above {batch}{entries}, all with their .crc: a restart then runs batch "
        f"{batch}."
    )

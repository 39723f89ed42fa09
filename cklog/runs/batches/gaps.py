"""Batches of which nothing is left between others: damage that stops nothing, or asynchronous progress tracking."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from cklog.inputs.batches import LogListing, MetadataLogs
from cklog.model.findings import Finding, Where
from cklog.model.wording import first_few

_EXAMPLES = 5


def asynchronous_finding(logs: MetadataLogs) -> Finding:
    """Report logs that leave out the same batches. Read off Spark 4.3: nothing else in them says so."""
    folder, line = logs.offset_log.folder, logs.committed
    message = (
        f"{folder} and {logs.commit_log.folder} leave out the same batches, {_named(_stretches(logs.offsets))}: the "
        f"query tracks its progress asynchronously. A restart reads on from the end of batch {line}, under the numbers "
        f"after it. Batches after {line} may have run, so that a sink may get their results again, in other batches. "
        "Start the query with asyncProgressTrackingEnabled, as before: without it, it stops where a batch is left out."
    )
    return Finding("async-progress", "info", folder, message, where=(Where(folder),))


def gap_findings(log: LogListing, present: Iterable[int], below: int) -> Iterable[Finding]:
    """Report missing files between others, but for `below` itself and above, which have findings of their own."""
    missing = [(first, min(last, below - 1)) for first, last in _stretches(present) if first < below]
    if missing:
        verb = "is" if missing == [(missing[0][0], missing[0][0])] else "are"
        which = f"{'batch' if verb == 'is' else 'batches'} {_named(missing)}"
        path = f"{log.folder}/{missing[0][0]}"
        message = f"{log.folder}: {which} {verb} missing between others. A restart reads none of it."
        yield Finding("batch-gap", "warning", path, message, where=(Where(path),))


def _stretches(present: Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last batch of each gap between batches."""
    return [(before + 1, after - 1) for before, after in pairwise(sorted(present)) if after > before + 1]


def _named(stretches: list[tuple[int, int]]) -> str:
    return first_few([str(a) if a == b else f"{a} to {b}" for a, b in stretches], _EXAMPLES)

"""Parts of a run that wait for what others send again: when each is ready, at the soonest and at the latest.

The ends are bounds in whatever order senders send. The low one counts a part's own work, and what a sender sends once
it is restored; the high one lets every part wait until its senders are ready. Parts that send to one another in a
circle are ready together, at the latest when all of their work is done one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cklog.lines.recovery.work import Timed, all_of, end_of


def ready_times(timed: Sequence[Timed]) -> tuple[list[float | None], list[float | None], list[int | None]]:
    """When each part is ready, at the soonest and at the latest, and which sender the latest waits for; shape (n,)."""
    index = {one.work.name: i for i, one in enumerate(timed)}
    senders = [
        sorted({index[n] for n in one.work.resent if n in index and one.work.resent[n]} - {i})
        for i, one in enumerate(timed)
    ]
    soonest = [_soonest(one, [timed[s] for s in senders[i]]) for i, one in enumerate(timed)]
    latest: list[float | None] = [None] * len(timed)
    waited: list[int | None] = [None] * len(timed)
    for group in _components(senders):
        members = set(group)
        outside = {s for i in group for s in senders[i]} - members
        if len(group) == 1:
            i = group[0]
            latest[i], waited[i] = _latest(timed[i], {s: latest[s] for s in senders[i]})
            continue
        ends = [end_of(timed[i].restore) for i in group] + [latest[s] for s in sorted(outside)]
        work = [end_of(part) for i in group for part in (timed[i].own, all_of(timed[i].again))]
        last = None if None in ends or None in work else max(filter(None, ends), default=0.0) + sum(filter(None, work))
        for i in group:
            latest[i] = last
            waited[i] = max(outside, key=lambda s: (latest[s] or 0.0, -s), default=None)
    return soonest, latest, waited


def _soonest(one: Timed, senders: Sequence[Timed]) -> float | None:
    """The least: its own work after its state is read, and what a sender sends after it is restored itself."""
    again = all_of(one.again)
    if one.restore is None or one.own is None or again is None or one.again is None:
        return None
    found = one.restore.low + one.own.low + again.low
    for sender in senders:
        if sender.restore is not None:
            found = max(found, sender.restore.low + one.again[sender.work.name].low)
    return found


def _latest(one: Timed, senders: Mapping[int, float | None]) -> tuple[float | None, int | None]:
    """The most: what is sent again is processed once all of its senders are ready; and the last of these, if that."""
    restore, own, again = end_of(one.restore), end_of(one.own), end_of(all_of(one.again))
    if restore is None or own is None or again is None:
        return None, None
    ends = [end for end in senders.values() if end is not None]
    if len(ends) < len(senders):
        return None, None
    last = max(ends, default=0.0)
    if last <= restore + own:
        return restore + own + again, None
    return last + again, min(s for s, end in senders.items() if end == last)


def _components(senders: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield parts that wait for one another, each group behind those that it waits for (Tarjan, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    held: set[int] = set()
    for root in range(len(senders)):
        if root in order:
            continue
        work = [(root, iter(senders[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        held.add(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    group = stack[at:]
                    del stack[at:]
                    held.difference_update(group)
                    yield sorted(group)
            elif following not in order:
                order[following] = low[following] = len(order)
                stack.append(following)
                held.add(following)
                work.append((following, iter(senders[following])))
            elif following in held:
                low[node] = min(low[node], order[following])

"""Small jobs that write to small tables, record by record: what a restart really leaves in each table.

Written from the definitions alone: a source of numbered records, a job with batches or checkpoints, tables with
parents, sinks that ask them. Nothing of cklog judges here; its values are what a table looks like (`view`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from cklog.inputs.sink_tables import SinkTable, Stamp, TableCommit, TableFormat, Writer


@dataclass
class Commit:
    id: int
    parent: int | None
    rows: list[int]
    who: Writer | None
    number: int | None
    op: str = "append"
    restores: int | None = None


@dataclass
class Table:
    """A table as its format keeps it: commits with parents, a head, and for Delta what transactions it has seen."""

    format: TableFormat
    commits: dict[int, Commit] = field(default_factory=dict)
    head: int | None = None
    next: int = 1
    txn: dict[Writer, int] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)

    def copy(self) -> Table:
        return Table(self.format, dict(self.commits), self.head, self.next, dict(self.txn), set(self.forgotten))

    def add(self, rows: list[int], who: Writer | None = None, number: int | None = None) -> None:
        self.commits[self.next] = Commit(self.next, self.head, rows, who, number)
        self.head, self.next = self.next, self.next + 1
        if who is not None and number is not None:
            self.txn[who] = number

    def chain(self) -> list[Commit]:
        found, at = [], self.head
        while at is not None:
            found.append(self.commits[at])
            at = self.commits[at].parent
        return found

    def rows(self) -> Counter[int]:
        return Counter(row for commit in self.chain() for row in commit.rows)

    def go_back(self, to: int) -> None:
        if self.format == "delta":
            self.commits[self.next] = Commit(self.next, to, [], None, None, "restore", to)
            self.head, self.next = self.next, self.next + 1
            return
        self.head = to
        if self.format == "paimon":
            self.commits = {n: c for n, c in self.commits.items() if n <= to}

    def expire(self, keep: int) -> None:
        """Forget all but the newest commits of the head; the rows stay."""
        self.forgotten |= {commit.id for commit in self.chain()[keep:]}
        on = {commit.id for commit in self.chain()}
        self.forgotten |= {n for n in self.commits if n not in on}

    def remembers(self, who: Writer) -> int | None:
        if self.format == "delta":
            return self.txn.get(who)
        mine = [c.number for c in self.chain() if c.who == who and c.id not in self.forgotten]
        return mine[0] if mine else None

    def view(self) -> SinkTable:
        """The table as a reader of its metadata sees it."""
        on = {commit.id for commit in self.chain()}
        seen = [c for n, c in sorted(self.commits.items()) if n not in self.forgotten]
        writers = {c.who for c in self.commits.values() if c.who is not None}
        found = {w: self.remembers(w) for w in writers}
        return SinkTable(
            uri="t",
            format=self.format,
            branch="main",
            commits=tuple(
                TableCommit(
                    str(c.id),
                    c.id * 1000,
                    "restore" if c.op == "restore" else "append",
                    len(c.rows),
                    (Stamp(c.who, c.number),) if c.who is not None else (),
                    None if c.restores is None else str(c.restores),
                    c.id not in on,
                )
                for c in seen
            ),
            head=None if self.head is None else str(self.head),
            branches={},
            remembers={w: n for w, n in found.items() if n is not None},
            expired=bool(self.forgotten),
        )


@dataclass
class Job:
    """A job that crashed. `ends[n]` is where number n ends in the source; `pending[c]` what checkpoint c had not yet
    told the sink to commit, by number; `same` the batch that was planned and has no commit."""

    engine: str
    ends: dict[int, int]
    lines: list[int]
    tables: list[Table]
    ids: list[str]
    wrote: dict[int, str]
    pending: dict[int, dict[int, list[int]]]
    same: int | None
    pending_at: list[dict[int, set[int]]]


OTHER = Writer("somebody", "batch")


def spark_job(random: Random, formats: list[TableFormat]) -> Job:
    """A query that ran some batches, and was killed anywhere between plan, table and commit."""
    last = random.randint(0, 4)
    ends, at = {-1: 0}, 0
    for batch in range(last + 1):
        at += random.randint(1, 2)
        ends[batch] = at
    crash = random.randint(0, 2)  # planned; written to some of the tables; committed
    who = Writer("q", "batch")
    tables = [Table(format) for format in formats]
    reached = random.randint(0, len(tables))
    for batch in range(last + 1):
        for place, table in enumerate(tables):
            if batch < last or crash == 2 or (crash == 1 and place < reached):
                table.add(list(range(ends[batch - 1], ends[batch])), who, batch)
            if random.random() < 0.15:
                table.add([], OTHER if random.random() < 0.5 else None, 7 if random.random() < 0.5 else None)
    committed = last if crash == 2 else last - 1
    return Job("spark", ends, list(range(-1, committed + 1)), tables, ["q"], {}, {}, last if crash != 2 else None, [])


def flink_job(random: Random, formats: list[TableFormat], attempts: int, fixed: bool) -> Job:
    """A job that took checkpoints, was restarted from its newest one perhaps, and crashed again.

    At checkpoint n its state names what the sink was not told to commit; a notification may be lost, and then the next
    one commits more. `fixed`: all attempts have one id.
    """
    ends = {0: 0}
    wrote: dict[int, str] = {}
    lines: list[int] = []
    made: dict[int, list[int]] = {}
    pendings: dict[int, dict[int, list[int]]] = {}
    tables = [Table(format) for format in formats]
    open_: list[dict[int, list[int]]] = [{} for _ in tables]
    stored: list[dict[int, set[int]]] = [{} for _ in tables]
    n, at = 0, 0
    ids = []
    for attempt in range(attempts):
        job = "j0" if fixed else f"j{attempt}"
        ids.append(job)
        if attempt and lines:  # a clean restart from the newest checkpoint
            n = lines[-1]
            at = ends[n]
            for place, table in enumerate(tables):
                before = writer_of(table, wrote[n])
                known = table.remembers(before)
                rest = {p: pendings[n][p] for p in stored[place][n] if known is None or p > known}
                if rest:
                    table.add([r for rows in rest.values() for r in rows], before, max(rest))
                open_[place] = {}
        for _ in range(random.randint(1, 3)):
            n += 1 if random.random() < 0.8 else 2  # a checkpoint that failed has a number, too
            made[n] = list(range(at, at := at + random.randint(1, 2)))
            ends[n] = at
            wrote[n] = job
            for place in range(len(tables)):
                open_[place][n] = made[n]
                stored[place][n] = set(open_[place])
            pendings[n] = {p: made[p] for p in set().union(*(s[n] for s in stored))}
            lines.append(n)
            for place, table in enumerate(tables):
                if random.random() < 0.8:
                    table.add([r for rows in open_[place].values() for r in rows], writer_of(table, job), n)
                    open_[place] = {}
                if random.random() < 0.1:
                    table.add([], None, None)
    return Job("flink", ends, lines, tables, list(dict.fromkeys(ids)), wrote, pendings, None, stored)


def writer_of(table: Table, job: str) -> Writer:
    """What a table calls an attempt of a Flink job: Paimon's commit user is kept in the state through all of them."""
    return Writer("user", "identifier") if table.format == "paimon" else Writer(job, "checkpoint")


def damage(random: Random, job: Job) -> None:
    """What people and services do to tables meanwhile."""
    for table in job.tables:
        for _ in range(random.choice([0, 0, 1, 2])):
            chain = [c.id for c in table.chain() if c.id not in table.forgotten]
            what = random.random()
            if what < 0.5 and len(chain) > 1:
                table.go_back(random.choice(chain[1:]))
            elif what < 0.65 and table.format == "iceberg" and chain:
                table.expire(random.randint(1, len(chain)))
            elif what < 0.75 and table.format == "delta":
                table.txn.clear()
            else:
                table.add([], OTHER, 9)


def cuts(start: int, end: int, most: int) -> Iterator[list[int]]:
    """Every way to cut [start, end) into parts of one or more records, of which the first `most` are cut."""
    if start >= end or not most:
        yield [end] if start < end else []
        return
    for at in range(start + 1, end + 1):
        for rest in cuts(at, end, most - 1):
            yield [at, *rest]


def ways_on(job: Job, line: int, table: Table, end: int) -> Iterator[Counter[int]]:
    """The rows of a table after a restart from a line that ran on to the `end` of the source: every way it may go."""
    if job.engine == "spark":
        yield from _spark_on(job, line, table, end)
    else:
        yield from _flink_on(job, line, table, end)


def _spark_on(job: Job, line: int, table: Table, end: int) -> Iterator[Counter[int]]:
    same = job.same if job.same == line + 1 else None
    start = job.ends[line if same is None else same]
    for way in cuts(start, end, 4):
        mine = table.copy()
        n, at, who = line, job.ends[line], Writer("q", "batch")
        for to in [*([] if same is None else [job.ends[same]]), *way, *range(end + 1, end + 9)]:
            n += 1
            known = mine.remembers(who)
            if mine.format == "paimon" or known is None or n > known:
                mine.add(list(range(at, to)), who, n)
            at = to
        yield mine.rows()


def _flink_on(job: Job, line: int, table: Table, end: int) -> Iterator[Counter[int]]:
    place = next(i for i, one in enumerate(job.tables) if one is table or one.format == table.format)
    before = writer_of(table, job.wrote[line])
    after = [job.wrote[line]] if len(job.ids) == 1 and job.ids[0] == "j0" else ["new"]
    modes = ["takes"] if table.format == "paimon" else ["held-back", "drops"]
    for mode in modes:
        for new in {*after, "new", job.wrote[line]}:
            for way in cuts(job.ends[line], end, 4):
                mine = table.copy()
                known = mine.remembers(before)
                rest = {p: job.pending[line][p] for p in job.pending_at[place][line] if known is None or p > known}
                if rest:
                    mine.add([r for rows in rest.values() for r in rows], before, max(rest))
                limit = max([-1 if known is None else known, *rest])
                who = writer_of(mine, new)
                n, at, held = line, job.ends[line], []
                for to in [*way, *range(end + 1, end + 9)]:
                    n += 1
                    rows, at = list(range(at, to)), to
                    if mode == "takes":
                        mine.add(rows, who, n)
                    elif mode == "drops":
                        mark = mine.remembers(who)
                        if mark is None or n > mark:
                            mine.add(rows, who, n)
                    else:
                        held += rows
                        if n > limit:
                            mine.add(held, who, n)
                            held = []
                yield mine.rows()

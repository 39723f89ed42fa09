"""What a failure and its recovery do to the results of a query: windows, operators, phases, trust.

Words of Brand, Grawunder and Appelrath, "A Modular Approach for Non-Distributed Crash Recovery for Streaming
Systems" (BTW 2017), sections 3 to 5. Times are application time in integer milliseconds, ranges are half-open.

A window operator yields a result for each of its input elements: at time t over the elements in [s, t], with
s = start(t) of `Window`. Filters, maps and unions pass elements on one by one; a join pairs an element at t with
those of the other side in that side's window at t.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from cklog.model.trust import Trust

OperatorClass = Literal["arbitrary", "deterministic", "convergent-capable", "repeatable"]
CLASSES: tuple[OperatorClass, ...] = ("arbitrary", "deterministic", "convergent-capable", "repeatable")

RecoveryClass = Literal["gap", "stateless-rollback", "rollback", "precise"]
RECOVERIES: tuple[RecoveryClass, ...] = ("gap", "stateless-rollback", "rollback", "precise")
"""Recovery techniques, each of which needs more evidence than the one before."""

ConvergenceKind = Literal["none", "finite", "unknown", "infinite"]
KINDS: tuple[ConvergenceKind, ...] = ("none", "finite", "unknown", "infinite")
"""Whether a convergence phase ends; of two inputs the later one here is what their operator is left with."""

GuaranteeClass = Literal["none", "at-most-once", "at-least-once", "exactly-once"]
GUARANTEES: tuple[GuaranteeClass, ...] = ("none", "at-most-once", "at-least-once", "exactly-once")
"""What can be kept (section 1), the weakest first; none: results may be missing and doubled."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window of time (`size` and `slide` in ms) or of elements (in elements); windows start at `start` + n · slide.

    `start` None: at the first element after a start from an empty state. `system`: by the clock of the machine. Where
    several windows hold a moment (or an element), a result of that moment is of the one that ends next, the oldest.

    Source: Brand, Grawunder, Appelrath (BTW 2017), section 3.2: every ts with (ts - ts0) mod slide = 0 starts a window.
    """

    kind: Literal["time", "count"]
    size: int
    slide: int
    start: int | None = None
    system: bool = False

    def oldest_at(self, at: int, start: int) -> int:
        """Return where the oldest window begins that holds the time (or element) `at`; windows align with `start`.

        Windows of 5 with a slide of 3 are [0, 5), [3, 8), [6, 11) and so on: at 4 two are open, at 5 only the second.

        >>> [Window("time", 5, 3).oldest_at(at, 0) for at in (4, 5, 7, 8)], Window("count", 2, 2).oldest_at(5, 0)
        ([0, 3, 3, 6], 4)
        """
        return start + self.slide * ((at - self.size - start) // self.slide + 1)

    def first_without(self, last: int, start: int) -> int:
        """Return the first time (or element) whose window holds nothing at or before `last`.

        That is when the last window ends that began at or before `last`; windows align with `start`.

        >>> Window("time", 60_000, 10).first_without(359_990, 0), Window("count", 2, 2).first_without(4, 0)
        (419990, 6)
        >>> Window("time", 5, 3).first_without(4, 0)  # [3, 8) holds it, [6, 11) does not
        8
        """
        return start + self.slide * ((last - start) // self.slide) + self.size

    def next_start(self, at: int, start: int) -> int:
        """Return the first time at or after `at` at which a window starts.

        >>> Window("time", 2000, 2000).next_start(5000, 0)
        6000
        """
        return start + self.slide * -((start - at) // self.slide)


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a query.

    `inputs` : the operators that it reads from, in order
    `windows` : one per input (join), one, or none (stateless)
    `stated` : the class that the manifest gives, None: derived (`cklog.impact.dataflow.classified`)
    `drops` : it passes on some of its elements only
    `delivery` : of a sink, whether it takes nothing twice
    """

    name: str
    kind: str
    inputs: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    stated: OperatorClass | None = None
    query: str = ""
    drops: bool = False
    delivery: Literal["plain", "transactional", "deduplicates"] = "plain"

    @property
    def joins(self) -> bool:
        """Whether it pairs elements of its inputs."""
        return self.kind == "join"

    @property
    def stateful(self) -> bool:
        """Whether it keeps anything from one element to the next."""
        return bool(self.windows) or (self.stated is not None and self.stated != "repeatable")


@dataclass(frozen=True, slots=True)
class Classified:
    """An operator's class and why it is that one."""

    operator: str
    recovery: OperatorClass
    why: str


@dataclass(frozen=True, slots=True)
class Count:
    """How many results there are, between two bounds; `most` None: nothing bounds it from above."""

    least: int
    most: int | None

    def __add__(self, other: Count) -> Count:
        most = None if self.most is None or other.most is None else self.most + other.most
        return Count(self.least + other.least, most)

    @property
    def exact(self) -> bool:
        """Whether it is one number."""
        return self.least == self.most


NOTHING = Count(0, 0)
UNKNOWN = Count(0, None)


@dataclass(frozen=True, slots=True)
class BoundedTime:
    """A time between two bounds, inclusive, and where it was found."""

    least: int
    most: int
    source: str

    @property
    def exact(self) -> bool:
        """Whether it is one time."""
        return self.least == self.most


@dataclass(frozen=True, slots=True)
class Phase:
    """Results at application times [from_, to) and what became of them; `to` None: no end is known.

    offline: missing. convergence: wrong, `kind` says whether it ends; under a join some are missing instead.
    duplicate: sent twice. Where checkpoint or crash are only known within bounds the span is the widest.
    """

    phase: Literal["offline", "convergence", "duplicate"]
    from_: int
    to: int | None
    results: Count
    kind: ConvergenceKind | None = None


@dataclass(frozen=True, slots=True)
class TrustSpan:
    """Results sent after the restart for application times [from_, to), and their trust."""

    trust: Trust
    from_: int
    to: int | None
    results: Count


@dataclass(frozen=True, slots=True)
class ClassSupport:
    """Whether the evidence supports a recovery class for an output, and the pieces that are missing."""

    recovery: RecoveryClass
    guarantee: GuaranteeClass
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputImpact:
    """What a query's output suffers under one recovery class.

    `supported` : whether the evidence suffices for that class
    `guarantee` : what it promises
    `convergence` : whether results become right again
    `first_right` : time of the first result after the convergence phase, in ms; None: none, or not known
    `missing`, `wrong`, `doubled`, `in_doubt` : how many results are
    `operators` : the operators above the output with their classes
    `classes` : what the evidence lacks for each recovery class
    """

    output: str
    query: str
    recovery: RecoveryClass
    supported: bool
    guarantee: GuaranteeClass
    convergence: ConvergenceKind
    first_right: int | None
    missing: Count
    wrong: Count
    doubled: Count
    in_doubt: Count
    phases: tuple[Phase, ...]
    trust: tuple[TrustSpan, ...]
    operators: tuple[Classified, ...]
    classes: tuple[ClassSupport, ...]


@dataclass(frozen=True, slots=True)
class RecoveryTask:
    """One step of the recovery: what is done (`task`), to whom (`subject`), `with_` which logged values, by name."""

    step: int
    task: str
    subject: str
    with_: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Impact:
    """The answer of `cklog impact` for a system on one machine (JSON schema cklog.impact/1); times in ms."""

    crash: BoundedTime
    restart: int | None
    checkpoint: BoundedTime | None
    outputs: tuple[OutputImpact, ...]
    tasks: tuple[RecoveryTask, ...]
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

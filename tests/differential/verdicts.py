"""What two decoders say of the same bytes, and whether it may be so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tests.differential.mutations import Damage

How = Literal["value", "refused", "limit"]


class Outcome(NamedTuple):
    """How a decoder ended: with a value, by refusing the bytes (`why`), or at a limit of what it may cost."""

    how: How
    value: Any = None
    why: str = ""


class Excuse(NamedTuple):
    """A difference that is a property of the reference; `holds(data, ours, theirs)` says whether it is this one."""

    name: str
    reason: str
    holds: Callable[[bytes, Outcome, Outcome], bool]


def equal_values(ours: Any, theirs: Any) -> bool:
    """Return whether values are equal, and of equal types: 1 is not True, 0.0 is not -0.0, and NaN is NaN."""
    return repr(ours) == repr(theirs)


@dataclass(frozen=True)
class Decoder:
    """A decoder of cklog, and what it is compared with.

    `make(damage)` writes an input; it passes what stands inside compressed or checksummed parts through
    `damage.inside`. `repair` sets the checksums of damaged bytes right again, as far as it finds them. `read` is cklog,
    `refer` the reference; both return an `Outcome` and let only bugs through.
    """

    name: str
    reference: str
    make: Callable[[Damage], bytes]
    read: Callable[[bytes], Outcome]
    refer: Callable[[bytes], Outcome]
    repair: Callable[[bytes], bytes] | None = None
    excuses: Sequence[Excuse] = ()
    equal: Callable[[Any, Any], bool] = equal_values
    asked_always: bool = True
    """Whether the reference is asked too what cklog refuses: not where that may end its process."""
    memory: int = 6 << 30
    """Bytes of address space of a worker: what asks for more gets a MemoryError."""
    compiled: bool = False
    """Whether loops of it are machine code, so that a run with bounds checks says something."""


AGREE = ("both accept", "both refuse")
NOT_ASKED = "cklog refuses, the reference was not asked"
WRONG = ("accepted though refused", "different values", "exception", "process ended", "runs differ")


class Verdict(NamedTuple):
    """How the two outcomes of a case go together: one of `AGREE`, "cklog alone refuses", one of `WRONG`, an excuse."""

    kind: str
    detail: str = ""


def judge(decoder: Decoder, data: bytes, ours: Outcome, theirs: Outcome) -> Verdict:
    """Compare two outcomes."""
    accepted, expected = ours.how == "value", theirs.how == "value"
    if accepted and expected and decoder.equal(ours.value, theirs.value):
        return Verdict("both accept")
    if not accepted and not decoder.asked_always:
        return Verdict(NOT_ASKED, ours.why)
    if not accepted:
        return Verdict("cklog alone refuses", ours.why) if expected else Verdict("both refuse")
    for excuse in decoder.excuses:
        if excuse.holds(data, ours, theirs):
            return Verdict(f"excused: {excuse.name}", excuse.reason)
    if expected:
        return Verdict("different values", f"cklog: {_shown(ours.value)}\nreference: {_shown(theirs.value)}")
    return Verdict("accepted though refused", f"cklog: {_shown(ours.value)}\nreference: {theirs.why}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


_SHOWN = 300


@dataclass
class Tally:
    """What came of the cases of one decoder."""

    cases: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    damaged: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        """Add what came of other cases."""
        self.cases += other.cases
        self.kinds.update(other.kinds)
        self.damaged.update(other.damaged)
        self.refusals.update(other.refusals)
        self.wrong += other.wrong
        self.seconds += other.seconds

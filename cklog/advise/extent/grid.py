"""The grid of settings that are tried on a log, and the rates of a recovery: as asked for, or by the log's scales."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Literal

from cklog.advise.extent.scan import FirstLook
from cklog.errors import UsageError
from cklog.policies.check_records import CHECK_COST_US, CheckPolicy, CostBenefit, Targets
from cklog.policies.load_time import LoadTime, published

LOAD_SOURCE = "Sebepou and Magoutis 2011, Figures 6 and 7: 120,000 to 500,000 records in 3.5 to 27 s"

TUPLE_BYTES = 100.0
"""Section IV: the tuple size is 100 bytes."""

_Q = ("1x", "2x", "4x", "8x")
"""Figure 6."""

_U_PARTS = (0.125, 0.25, 0.5, 1.0)
"""Of the tuples that pass while a window is open; Figure 7 takes 125,000 to 1,000,000 where that is 900,000."""

_MOST_SETTINGS = 1000


@dataclass(frozen=True, slots=True)
class ExtentQuestion:
    """What `advise extent` is asked. None and () mean: by the log's own scales.

    Attributes
    ----------
    q, u : targets in records and tuples, "none", or for Q "2x" the mean number of windows open
    ci_ms, cp_ms, cost_us : pace of the checks, as `cklog.policies.check_records.Pace` has it
    mtbf_h : mean times between failures, in hours, for the cost-benefit policy
    load_rate, replay_rate : records and tuples per s of a recovery
    tuple_bytes : size of an input tuple
    max_recovery_s : the longest recovery allowed, in seconds
    """

    q: tuple[str, ...] = ()
    u: tuple[str, ...] = ()
    ci_ms: tuple[float, ...] = (5.0,)
    cp_ms: tuple[float, ...] = (100.0,)
    cost_us: float = CHECK_COST_US
    mtbf_h: tuple[float, ...] = (1.0, 24.0, 168.0)
    load_rate: float | None = None
    replay_rate: float | None = None
    tuple_bytes: float | None = None
    max_recovery_s: float | None = None

    def __post_init__(self) -> None:
        numbers = {
            "load rate": self.load_rate,
            "replay rate": self.replay_rate,
            "size of a tuple": self.tuple_bytes,
            "longest recovery": self.max_recovery_s,
            **{f"mean time between failures {i}": hours for i, hours in enumerate(self.mtbf_h, 1)},
        }
        for name, value in numbers.items():
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"the {name} is {value:g}: it must be positive")


@dataclass(frozen=True, slots=True)
class MeasuredNumber:
    """A number that the answer rests on, and where it comes from; None: unknown, or not one number."""

    value: float | None
    source: str


@dataclass(frozen=True, slots=True)
class PolicySetting:
    """One row of the grid: a policy and its pace; None: the policy has no such number.

    `kind`: "none" writes no checks, "recorded" is what the log's own writer did. `q` and `u` are targets in records and
    tuples, `mtbf_h` is in hours, `ci_ms` and `cp_ms` in ms.
    """

    name: str
    kind: Literal["recorded", "none", "targets", "cost-benefit"]
    q: float | None = None
    u: float | None = None
    mtbf_h: float | None = None
    ci_ms: float | None = None
    cp_ms: float | None = None

    def policy(self, cost_us: float, load: LoadTime, replay_s: float) -> CheckPolicy:
        """Return the setting as a policy of `cklog.policies.check_records`.

        A check costs `cost_us`; a recovery takes the time of `load` for its extent, and `replay_s` per tuple.
        """
        assert self.ci_ms is not None
        assert self.cp_ms is not None
        if self.mtbf_h is None:
            return Targets(self.q, self.u, period_ms=self.cp_ms, interval_ms=self.ci_ms, cost_us=cost_us)
        return CostBenefit(
            self.mtbf_h * 3600, load, replay_s, period_ms=self.cp_ms, interval_ms=self.ci_ms, cost_us=cost_us
        )


def grid(asked: ExtentQuestion, look: FirstLook) -> tuple[list[PolicySetting], list[str]]:
    """Return the settings to try, without repeats, and notes about those that cannot be.

    Without --q and --u each target alone, as in Figures 6 and 7; with one of them that one alone; with both, pairs.
    """
    notes = []
    q_words = asked.q or (_Q if not asked.u else ("none",))
    u_words = asked.u or (("none",) if asked.q else tuple(map(str, own_u(look))))
    if look.tuples is None and any(word != "none" for word in u_words) | (not asked.q and not asked.u):
        notes.append("the records carry no input numbers: the replay is unknown, and settings with U are left out")
        u_words = tuple(word for word in u_words if word == "none")
    pairs = list(itertools.product(q_words, u_words))
    if not asked.q and not asked.u:
        pairs = [*((word, "none") for word in q_words), *(("none", word) for word in u_words)]
    paces = list(itertools.product(asked.ci_ms, asked.cp_ms))
    unpaced = [_target_setting(q, u, look) for q, u in pairs]
    unpaced += [PolicySetting(f"MTBF={h:g}h", "cost-benefit", mtbf_h=h) for h in asked.mtbf_h]
    found = {}
    for setting, (ci, cp) in itertools.product(unpaced, paces):
        pace = f" CI={ci:g}" * (len(asked.ci_ms) > 1) + f" CP={cp:g}" * (len(asked.cp_ms) > 1)
        name = setting.name + pace
        if setting.kind != "none":
            found[name] = replace(setting, name=name, ci_ms=ci, cp_ms=cp)
    if len(found) > _MOST_SETTINGS:
        raise UsageError(f"a grid of {len(found)} settings", f"at most {_MOST_SETTINGS}")
    return list(found.values()), notes


def own_u(look: FirstLook) -> list[int]:
    """Return targets U, in tuples, around the log's own scale, two digits each.

    By Little's law the mean number of windows open times the tuples per opening are the tuples that pass while a
    window is open: the scale of the replay without checks.

    >>> own_u(FirstLook(tuples=1_000_000, opens=100_000, open_windows=90_000.0))
    [110000, 220000, 450000, 900000]
    """
    if not look.tuples or not look.opens or look.open_windows <= 0:
        return []
    scale = look.open_windows * look.tuples / look.opens
    return list(dict.fromkeys(int(float(f"{part * scale:.1e}")) for part in _U_PARTS))


def _target_setting(q_word: str, u_word: str, look: FirstLook) -> PolicySetting:
    q, u = _records_of(q_word, look), _number_of(u_word, "--u", "tuples")
    if q is None and u is None:
        return PolicySetting("no checks", "none")
    name = [] if q is None else [f"Q={q_word}" if q_word.endswith("x") else f"Q={q:,.0f}"]
    name += [] if u is None else [f"U={u:,.0f}"]
    return PolicySetting(" ".join(name), "targets", q, u)


def _records_of(word: str, look: FirstLook) -> float | None:
    """Return the target Q that a word says, in records; None for "none"."""
    if not word.endswith("x"):
        return _number_of(word, "--q", "records, or 2x the windows open")
    times = _number_of(word[:-1], "--q", "records, or 2x the windows open")
    return None if times is None else float(round(times * look.open_windows))


def _number_of(word: str, option: str, what: str) -> float | None:
    if word == "none":
        return None
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise UsageError(f"{option} {word}: a number of {what}, or none")
    return found


def load_rate(asked: ExtentQuestion) -> MeasuredNumber:
    """Return how many records of an extent are loaded per second; None: that depends on how many they are."""
    if asked.load_rate is None:
        return MeasuredNumber(None, LOAD_SOURCE)
    return MeasuredNumber(asked.load_rate, "given")


def load_time(asked: ExtentQuestion) -> LoadTime:
    """Return how long an extent takes to load: at the rate that is given, else as the paper measured it."""
    return published() if asked.load_rate is None else LoadTime.per_record(1 / asked.load_rate)


def replay_rate(asked: ExtentQuestion, look: FirstLook) -> MeasuredNumber:
    """Return how many tuples are replayed per second: the operator can process at least as many as it has.

    Raises
    ------
    UsageError : it is not given, and the log is too short to show it
    """
    if asked.replay_rate is not None:
        return MeasuredNumber(asked.replay_rate, "given")
    if look.tuples is None:
        return MeasuredNumber(None, "the log does not number its input")
    if look.tuples_per_s is None:
        raise UsageError("the log is too short to show how fast tuples are processed", "give --replay-rate")
    return MeasuredNumber(look.tuples_per_s, "the most in a whole second of the log")


def tuple_bytes(asked: ExtentQuestion, upstream_bytes: float | None, look: FirstLook) -> MeasuredNumber:
    """Return the size of an input tuple in bytes: as asked, of the upstream's records, or of the queue's own."""
    if asked.tuple_bytes is not None:
        return MeasuredNumber(asked.tuple_bytes, "given")
    if upstream_bytes is not None:
        return MeasuredNumber(upstream_bytes, "mean at the end of the upstream's queue")
    if look.record_bytes:
        return MeasuredNumber(look.record_bytes, "mean of the queue's own records")
    return MeasuredNumber(TUPLE_BYTES, "Sebepou and Magoutis 2011, section IV")

"""Questions about rounds and output queues, and what to set from what this history shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cklog.library.asking import Asking
from cklog.library.results import Result
from cklog.library.values import Moment, Names, ms_of, names_of

if TYPE_CHECKING:
    from cklog.advise.delta.answer import DeltaAdvice
    from cklog.advise.extent.answer import ExtentAdvice
    from cklog.advise.timing.answer import TimingAdvice
    from cklog.model.eventual import EventualCheckpoint, Extent
    from cklog.policies.delta_number import BenefitMeasure
    from cklog.protocols.choice.model import ProtocolAdvice
    from cklog.queues.over_time.timeline import ExtentOverTime
    from cklog.rounds.answer import RoundsAnswer
    from cklog.rounds.sweep import SweepAnswer, SweepBy


class Advice(Asking):
    """Answer what `cklog rounds`, `extent`, `eventual-checkpoint` and `advise` answer."""

    def rounds(
        self, *, round: int | None = None, failed_nodes: Names = (), as_of: Moment = None
    ) -> Result[RoundsAnswer]:
        """List coordinated rounds: the newest complete one, where the last hangs, and what a restart takes."""
        from cklog.rounds.answer import RoundsQuestion

        return self._told(self._run.rounds(RoundsQuestion(round, names_of(failed_nodes), ms_of(as_of))))

    def sweep_rounds(self, by: SweepBy, *, as_of: Moment = None) -> Result[SweepAnswer]:
        """Say what is left when every node, rack or pair of nodes fails."""
        from cklog.rounds.sweep import SweepQuestion

        return self._told(self._run.sweep_rounds(SweepQuestion(by, ms_of(as_of))))

    def extent(self, operator: str, *, forward: bool = False, as_of: Moment = None) -> Result[Extent]:
        """Measure how far back the eventual checkpoint of an operator reaches."""
        return self._told(self._run.extent(operator, forward, ms_of(as_of)))

    def extent_over_time(
        self, operator: str, *, max_extent: int | None = None, max_replay: int | None = None
    ) -> Result[ExtentOverTime]:
        """Follow extent and replay of an operator along the whole log, and where a target was broken."""
        return self._told(self._run.extent_over_time(operator, max_extent, max_replay))

    def eventual_checkpoint(
        self, operator: str, *, forward: bool = False, as_of: Moment = None
    ) -> Result[EventualCheckpoint]:
        """Reconstruct the eventual checkpoint of an operator, ready to load, with the replay filter."""
        return self._told(self._run.eventual_checkpoint(operator, forward, ms_of(as_of)))

    def advise_extent(
        self,
        operator: str,
        *,
        q: Names = (),
        u: Names = (),
        ci_ms: Iterable[float] = (5.0,),
        cp_ms: Iterable[float] = (100.0,),
        cost_us: float = 2.5,
        mtbf_h: Iterable[float] = (1.0, 24.0, 168.0),
        load_rate: float | None = None,
        replay_rate: float | None = None,
        tuple_bytes: float | None = None,
        max_recovery_s: float | None = None,
    ) -> Result[ExtentAdvice]:
        """Say what targets Q and U would have given on an operator's output queue; (): by the log's own scales."""
        from cklog.advise.extent.grid import ExtentQuestion

        grid = (names_of(q), names_of(u), tuple(map(float, ci_ms)), tuple(map(float, cp_ms)), float(cost_us))
        asked = ExtentQuestion(*grid, tuple(map(float, mtbf_h)), load_rate, replay_rate, tuple_bytes, max_recovery_s)
        return self._told(self._run.advise_extent(operator, asked))

    def advise_delta(
        self,
        *,
        operator: str = "",
        by: BenefitMeasure | None = None,
        ratio: float = 1.5,
        max_delta: int | None = None,
        max_restore_ms: float | None = None,
        probe_after: int = 10,
    ) -> Result[DeltaAdvice]:
        """Say how many delta checkpoints to take after a base, and what that would have saved."""
        from cklog.advise.delta.answer import DeltaQuestion
        from cklog.policies.delta_number import DeltaLimits

        limits = DeltaLimits(float(ratio), max_delta, max_restore_ms, probe_after)
        return self._told(self._run.advise_delta(DeltaQuestion(limits, by, operator)))

    def advise_timing(
        self, *, period_s: float = 200.0, profile_periods: int | None = None, seed: int = 0
    ) -> Result[TimingAdvice]:
        """Say when to checkpoint so that little is written, by the sizes of state."""
        from cklog.advise.timing.answer import TimingQuestion

        return self._told(self._run.advise_timing(TimingQuestion(float(period_s), profile_periods, seed)))

    def advise_protocol(
        self,
        *,
        intervals_s: Iterable[float] = (),
        between_failures_h: float = 24.0,
        log_mb_s: float = 100.0,
        checkpoint_ms: float | None = None,
        as_of: Moment = None,
    ) -> Result[ProtocolAdvice]:
        """Say which checkpointing protocol the job should use, by replaying its messages under each."""
        from cklog.protocols.choice.model import ProtocolQuestion

        takes = None if checkpoint_ms is None else float(checkpoint_ms)
        rates = (float(between_failures_h), float(log_mb_s), takes)
        asked = ProtocolQuestion(tuple(map(float, intervals_s)), *rates, ms_of(as_of))
        return self._told(self._run.advise_protocol(asked))

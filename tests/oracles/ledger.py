"""A log of check records as a list, its extent and replay by the definitions."""

from __future__ import annotations

from dataclasses import dataclass, field

from cklog.policies.check_records import CHECK, EMIT, RESULT, CostBenefit, Targets


@dataclass
class PlainLedger:
    """Records as (kind, window, input, ms)."""

    log: list[tuple[int, int, int, int]] = field(default_factory=list)
    input: int = -1
    time_ms: int = 0

    def append(self, kind: int, window: int) -> None:
        self.log.append((kind, window, self.input, self.time_ms))

    def footprints(self) -> list[int]:
        """Positions of the last records of the windows whose last record does not close them."""
        last = {record[1]: at for at, record in enumerate(self.log) if record[0] != EMIT}
        return sorted(at for at in last.values() if self.log[at][0] != RESULT)

    def extent(self) -> int:
        return len(self.log) - min(self.footprints(), default=len(self.log))

    def replay(self) -> int:
        return self.input - min((self.log[at][2] for at in self.footprints()), default=self.input)

    def check_oldest(self) -> int:
        window = self.log[self.footprints()[0]][1]
        self.append(CHECK, window)
        return window

    def after(self, checks: int) -> PlainLedger:
        other = PlainLedger(list(self.log), self.input, self.time_ms)
        for _ in range(checks):
            other.check_oldest()
        return other

    def check(self, policy: Targets, budget: int) -> list[int]:
        """One at a time, until both targets are met or nothing more can be done."""
        done: list[int] = []
        open_windows = len(self.footprints())
        while len(done) < min(budget, open_windows) and (
            (policy.q is not None and self.extent() > policy.q)
            or (policy.q_windows is not None and self.extent() > policy.q_windows * open_windows)
            or (policy.u is not None and self.replay() > policy.u)
        ):
            done.append(self.check_oldest())
        return done

    def saved_s(self, policy: CostBenefit, checks: int) -> float:
        """What that many checks save, from the definition."""
        then = self.after(checks)
        age_s = (self.time_ms - self.log[self.footprints()[0]][3]) / 1000
        gain = float(policy.load.seconds(self.extent()) - policy.load.seconds(then.extent()))
        gain += policy.replay_s_per_tuple * (self.replay() - then.replay())
        return age_s / policy.mtbf_s * gain - checks * policy.cost_us / 1e6

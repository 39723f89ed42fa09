"""cklog simulate cec FOLDER"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cklog.commands.options import size
from cklog.commands.simulate.options import EncodingName, PrintOptions, flattened
from cklog.errors import UsageError

if TYPE_CHECKING:  # the simulator is loaded by the methods that run it: other commands start without it
    from cklog.policies.check_records import SavePolicy
    from cklog.simulate.cec.operator import Statistics
    from cklog.simulate.cec.tuples import Workload


_TUPLES, _CI = 1_000_000, "5"


class Distribution(StrEnum):
    """`--distribution`."""

    uniform = "uniform"
    zipf = "zipf"


class PolicyName(StrEnum):
    """`--policy`."""

    targets = "targets"
    cost_benefit = "cost-benefit"
    rollback = "rollback"
    none = "none"


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """What the operator is fed; each field is a parameter of the command line."""

    keys: Annotated[int, typer.Option("--keys", metavar="N", help="Items, each with windows of its own.")] = 100_000
    distribution: Annotated[Distribution, typer.Option("--distribution", help="How often each key comes.")] = (
        Distribution.uniform
    )
    zipf_exponent: Annotated[float, typer.Option("--zipf-exponent", metavar="X", help="Of --distribution zipf.")] = 1.1
    count: Annotated[int | None, typer.Option("--count", metavar="N", help="Tuples in a window (10).")] = None
    window_ms: Annotated[
        int | None, typer.Option("--window-ms", metavar="MS", help="Tumbling time windows instead of --count.")
    ] = None
    rate: Annotated[float, typer.Option("--rate", metavar="N", help="Tuples per second without checks.")] = 54_545.0
    tuples: Annotated[
        int | None, typer.Option("--tuples", metavar="N", help="Length of the run (1 million; --paper: 8 each).")
    ] = None
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another seed, another stream.")] = 1

    def workload(self, paper: bool) -> Workload:
        """Return the workload as the simulator takes it; `paper`: one that is long enough for the paper's figures."""
        from cklog.simulate.cec.figures import TUPLES
        from cklog.simulate.cec.tuples import Workload

        count = 10 if self.count is None and self.window_ms is None else self.count
        return Workload(
            keys=self.keys,
            distribution=self.distribution.value,
            zipf_exponent=self.zipf_exponent,
            count=count,
            window_ms=self.window_ms,
            rate=self.rate,
            tuples=(TUPLES if paper else _TUPLES) if self.tuples is None else self.tuples,
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """When check records are written; each field is a parameter of the command line."""

    name: Annotated[
        PolicyName,
        typer.Option("--policy", help="When to write check records. rollback: all state at the end of each period."),
    ] = PolicyName.targets
    q: Annotated[str, typer.Option("--q", metavar="N,…", help="Check if the extent exceeds N records.")] = ""
    q_windows: Annotated[
        str, typer.Option("--q-windows", metavar="X,…", help="Check if it exceeds X times the open windows.")
    ] = ""
    u: Annotated[str, typer.Option("--u", metavar="N,…", help="Check if the replay exceeds N tuples.")] = ""
    ci: Annotated[str, typer.Option("--ci", metavar="MS,…", help="Most time for checks in a period.")] = _CI
    cp: Annotated[str, typer.Option("--cp", metavar="MS,…", help="Checkpoint period.")] = "100"
    check_cost: Annotated[float, typer.Option("--check-cost", metavar="US", help="Time that a check takes.")] = 2.5
    mtbf_hours: Annotated[
        float, typer.Option("--mtbf-hours", metavar="H", help="cost-benefit: mean time between failures.")
    ] = 24.0
    load_us: Annotated[
        float | None,
        typer.Option(
            "--load-us", metavar="US", help="cost-benefit: time to load a record (by the paper's six points)."
        ),
    ] = None
    replay_us: Annotated[
        float | None, typer.Option("--replay-us", metavar="US", help="cost-benefit: time to replay a tuple (1/rate).")
    ] = None

    def policies(self, rate: float) -> list[SavePolicy]:
        """Return the policies as the simulator takes them: one for each combination of the numbers in the lists."""
        given = {"q": self.q, "q_windows": self.q_windows, "u": self.u, "interval_ms": self.ci, "period_ms": self.cp}
        lists: list[list[float | None]] = [[*numbers(f"--{name}", text)] or [None] for name, text in given.items()]
        return [self._policy(rate, dict(zip(given, chosen, strict=True))) for chosen in itertools.product(*lists)]

    def _policy(self, rate: float, chosen: dict[str, float | None]) -> SavePolicy:
        """One of them; targets that are not given are the paper's example (section III.A)."""
        from cklog.policies.check_records import CostBenefit, Targets, WholeState
        from cklog.policies.load_time import LoadTime, published

        targets: dict[str, Any] = {name: chosen[name] for name in ("q", "u", "q_windows")}
        pace: dict[str, Any] = {name: chosen[name] for name in ("period_ms", "interval_ms")}
        pace["cost_us"] = self.check_cost
        given = any(value is not None for value in targets.values())
        if given and self.name != PolicyName.targets:
            raise UsageError(f"--policy {self.name.value} has no targets: --q, --q-windows and --u are of another")
        if self.name == PolicyName.cost_benefit:
            replay_s = 1 / rate if self.replay_us is None else self.replay_us / 1e6
            load = published() if self.load_us is None else LoadTime.per_record(self.load_us / 1e6)
            return CostBenefit(self.mtbf_hours * 3600, load, replay_s, **pace)
        if self.name == PolicyName.rollback:
            if self.ci != _CI:
                raise UsageError("--policy rollback stands still until all is saved: --ci is of the other policies")
            return WholeState(period_ms=pace["period_ms"], interval_ms=0, cost_us=self.check_cost)
        if given or self.name == PolicyName.none:
            return Targets(**targets, **pace)
        return Targets(q=1_000, u=1_000_000, **pace)


def numbers(option: str, text: str) -> list[float]:
    """Return the numbers of a comma-separated list.

    >>> numbers("--cp", "25,50"), numbers("--q", "")
    ([25.0, 50.0], [])
    """
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"{option} {text}: numbers, separated by commas") from None


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What is written; each field is a parameter of the command line."""

    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="New run folder; none with --no-log.")] = ""
    paper: Annotated[
        bool, typer.Option("--paper", help="Run the paper's experiments: every number of its figures beside cklog's.")
    ] = False
    no_log: Annotated[bool, typer.Option("--no-log", help="Write nothing, only print the figures.")] = False
    upstream: Annotated[bool, typer.Option("--upstream", help="Write the queue of the filter in front, too.")] = False
    encoding: Annotated[EncodingName, typer.Option("--encoding", help="Of the queues.")] = EncodingName.jsonl
    checksums: Annotated[bool, typer.Option("--checksums", help="A CRC-32C in every line.")] = False
    part_size: Annotated[str, typer.Option("--part-size", metavar="SIZE", help="Then a new file begins.")] = "1GiB"
    crash_at: Annotated[
        int | None, typer.Option("--crash-at", metavar="TUPLES", help="End there, the last record torn.")
    ] = None

    def run(self, workload: Workload, policy: SavePolicy) -> Statistics:
        """Simulate, and write what is asked for."""
        from cklog.policies.check_records import WholeState
        from cklog.simulate.cec.operator import simulate as figures_of
        from cklog.simulate.cec.write import write

        if not self.no_log:
            if isinstance(policy, WholeState):
                raise UsageError("--policy rollback writes no output queue with the state in it", "give --no-log")
            if not self.folder:
                raise UsageError("no FOLDER to write to", "give a new folder, or --no-log for the figures alone")
            return write(
                self.folder,
                workload,
                policy,
                encoding=self.encoding.value,
                part_bytes=size(self.part_size),
                checksums=self.checksums,
                upstream=self.upstream,
                crash_at=self.crash_at,
            )
        if self.folder or self.upstream or self.checksums or self.crash_at is not None:
            raise UsageError("--no-log writes nothing: it takes no FOLDER, --upstream, --checksums or --crash-at")
        return figures_of(workload, policy)


@flattened
def cec(log: LogOptions, fed: WorkloadOptions, checks: PolicyOptions, printed: PrintOptions) -> None:
    """Continuous eventual checkpointing: the output queue of an aggregate, and how its extent fared.

    The defaults are those of the paper's evaluation (Sebepou and Magoutis, DSN 2011, section IV). Lists of numbers
    in the options of the policy give one line for each setting.
    """
    from cklog.simulate.cec.write import paper_answer, simulation_answer, sweep_answer

    printed.chosen()
    workload = fed.workload(log.paper)
    if log.paper:
        _refuse_beside_paper(log, fed, checks)
        printed.show(paper_answer(workload))
        return
    policies = checks.policies(workload.rate)
    if len(policies) == 1:
        printed.show(simulation_answer(log.folder, workload, policies[0], log.run(workload, policies[0])))
        return
    if not log.no_log:
        raise UsageError(f"{len(policies)} settings at once: only with --no-log", "name one setting for a log")
    printed.show(sweep_answer(workload, [(policy, log.run(workload, policy)) for policy in policies]))


def _refuse_beside_paper(log: LogOptions, fed: WorkloadOptions, checks: PolicyOptions) -> None:
    """Refuse options that the paper's experiments decide themselves."""
    own = WorkloadOptions(tuples=fed.tuples, seed=fed.seed)
    if (log, fed, checks) != (LogOptions(paper=True), own, PolicyOptions()):
        raise UsageError("--paper runs the paper's own experiments", "beside it only --tuples and --seed can be given")

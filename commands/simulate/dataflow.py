"""cklog simulate nexmark FOLDER, cklog simulate cyclic FOLDER"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cklog.commands.options import size
from cklog.commands.simulate.options import EncodingName, PrintOptions, flattened
from cklog.errors import UsageError

if TYPE_CHECKING:  # the simulator is loaded by the methods that run it: other commands start without it
    from cklog.simulate.dataflow.journal import Figures
    from cklog.simulate.dataflow.queries import DataflowQuery
    from cklog.simulate.dataflow.setting import DataflowSetting


class NexmarkName(StrEnum):
    """`--query`."""

    q1 = "q1"
    q3 = "q3"
    q8 = "q8"
    q12 = "q12"


class ProtocolName(StrEnum):
    """`--protocol`."""

    unc = "unc"
    hmnr = "cic-hmnr"
    bcs = "cic-bcs"
    coor = "coor"


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The job and its protocol; each field is a parameter of the command line."""

    protocol: Annotated[ProtocolName, typer.Option("--protocol", help="How it checkpoints.")] = ProtocolName.unc
    workers: Annotated[int, typer.Option("--workers", metavar="N", help="Each with an instance per operator.")] = 10
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", help="Records per second and worker (100; cyclic: 20).")
    ] = None
    load: Annotated[
        float, typer.Option("--load", metavar="X", help="Share of a worker's time that its records take.")
    ] = 0.8
    interval: Annotated[float, typer.Option("--interval", metavar="S", help="Between checkpoints.")] = 5.0
    spread: Annotated[float, typer.Option("--spread", metavar="S", help="More or less, drawn each time.")] = 1.0
    first_round: Annotated[
        float | None, typer.Option("--first-round", metavar="S", help="coor: the first round (10; q8: 5).")
    ] = None
    own_timers: Annotated[
        bool, typer.Option("--own-timers", help="Subtasks of a worker checkpoint each by its own timer.")
    ] = False
    orders_first: Annotated[
        bool, typer.Option("--orders-first", help="coor: sources checkpoint before they read what came earlier.")
    ] = False
    failure_at: Annotated[float | None, typer.Option("--failure-at", metavar="S", help="The end of the run (48).")] = (
        None
    )
    delay: Annotated[float, typer.Option("--delay", metavar="MS", help="Of the network.")] = 1.0
    jitter: Annotated[float, typer.Option("--jitter", metavar="MS", help="At most so much more delay.")] = 1.0
    snapshot: Annotated[float, typer.Option("--snapshot", metavar="MS", help="Time that a checkpoint takes.")] = 1.0
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another seed, another run.")] = 1

    def setting(self, query: DataflowQuery, hot_items: float = 0.0) -> DataflowSetting:
        """Return the options as the simulator takes them."""
        from cklog.simulate.dataflow.setting import DataflowSetting

        return DataflowSetting(
            query,
            self.protocol.value,
            self.workers,
            rate=query.rate if self.rate is None else self.rate,
            failure_s=query.failure_s if self.failure_at is None else self.failure_at,
            first_round_s=query.first_round_s if self.first_round is None else self.first_round,
            load=self.load,
            interval_s=self.interval,
            spread_s=self.spread,
            hot_items=hot_items,
            own_timers=self.own_timers,
            orders_first=self.orders_first,
            delay_ms=self.delay,
            jitter_ms=self.jitter,
            snapshot_ms=self.snapshot,
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True)
class NexmarkOptions:
    """Which query, and how its keys are spread; each field is a parameter of the command line."""

    query: Annotated[NexmarkName, typer.Option("--query", help="Of the NexMark benchmark.")] = NexmarkName.q3
    hot_items: Annotated[
        float, typer.Option("--hot-items", metavar="PERCENT", help="Of the keyed records have one key.")
    ] = 0.0


@dataclass(frozen=True, slots=True)
class RunFolderOptions:
    """What is written; each field is a parameter of the command line."""

    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="New run folder; none with --no-log.")] = ""
    no_log: Annotated[bool, typer.Option("--no-log", help="Write nothing, only print the figures.")] = False
    encoding: Annotated[EncodingName, typer.Option("--encoding", help="Of the records.")] = EncodingName.jsonl
    part_size: Annotated[str, typer.Option("--part-size", metavar="SIZE", help="Then a new file begins.")] = "1GiB"
    no_channels: Annotated[bool, typer.Option("--no-channels", help="Leave the logs of messages out.")] = False
    events: Annotated[bool, typer.Option("--events", help="Write every send and receipt, too.")] = False

    def run(self, setting: DataflowSetting) -> Figures:
        """Simulate, and write what is asked for."""
        from cklog.simulate.dataflow.run import simulate, write

        if self.no_log:
            if self.folder or self.no_channels or self.events:
                raise UsageError("--no-log writes nothing: it takes no FOLDER, --no-channels or --events")
            return simulate(setting)
        if not self.folder:
            raise UsageError("no FOLDER to write to", "give a new folder, or --no-log for the figures alone")
        return write(
            self.folder,
            setting,
            encoding=self.encoding.value,
            part_bytes=size(self.part_size),
            channels=not self.no_channels,
            events=self.events,
        )


@flattened
def nexmark(log: RunFolderOptions, asked: NexmarkOptions, job: JobOptions, printed: PrintOptions) -> None:
    """A NexMark query under a checkpointing protocol, until it fails: its checkpoints and message logs.

    The queries, intervals and failure are those of CheckMate (Siachamis et al., ICDE 2024); rates are scaled down.
    """
    from cklog.simulate.dataflow.queries import NEXMARK

    setting = job.setting(NEXMARK[asked.query.value], asked.hot_items / 100)
    _show(log, setting, printed)


@flattened
def cyclic(log: RunFolderOptions, job: JobOptions, printed: PrintOptions) -> None:
    """The reachability query, whose results are its input again, under a checkpointing protocol, until it fails.

    As in CheckMate (Siachamis et al., ICDE 2024); rates are scaled down. Coordinated checkpoints deadlock on it.
    """
    from cklog.simulate.dataflow.queries import CYCLIC

    _show(log, job.setting(CYCLIC), printed)


def _show(log: RunFolderOptions, setting: DataflowSetting, printed: PrintOptions) -> None:
    from cklog.simulate.dataflow.run import dataflow_answer

    printed.chosen()
    printed.show(dataflow_answer(log.folder, setting, log.run(setting)))

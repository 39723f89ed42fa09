"""cklog simulate odysseus FOLDER"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cklog.commands.options import RecoveryName
from cklog.commands.simulate.options import EncodingName, PrintOptions, flattened
from cklog.errors import UsageError

if TYPE_CHECKING:  # the simulator is loaded by the methods that run it: other commands start without it
    from cklog.simulate.odysseus.crash import Crashed


_MOST_SECONDS, _MOST_ELEMENTS = 1_000_000, 2_000_000


class OdysseusName(StrEnum):
    """`--query`."""

    counting = "count"
    figure = "figure"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The query, its crash and its recovery; each field is a parameter of the command line."""

    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="New run folder; none with --no-log.")] = ""
    no_log: Annotated[bool, typer.Option("--no-log", help="Write nothing, only print the figures.")] = False
    recovery: Annotated[RecoveryName, typer.Option("--recovery", help="How it recovers.")] = RecoveryName.precise
    query: Annotated[
        OdysseusName, typer.Option("--query", help="The counting query, or the three of the paper's Figure 1.")
    ] = OdysseusName.counting
    window: Annotated[float, typer.Option("--window", metavar="S", help="Counting: size of the window.")] = 60.0
    slide: Annotated[float | None, typer.Option("--slide", metavar="S", help="Counting: its slide (period).")] = None
    period: Annotated[float, typer.Option("--period", metavar="MS", help="Counting: between two elements.")] = 10.0
    interval: Annotated[float, typer.Option("--interval", metavar="S", help="Between checkpoints (figure: 2).")] = 60.0
    crash: Annotated[float, typer.Option("--crash-at", metavar="S", help="The crash (figure: 3).")] = 270.0
    restart: Annotated[float, typer.Option("--restart-at", metavar="S", help="The restart (figure: 5).")] = 360.0
    end: Annotated[float, typer.Option("--end", metavar="S", help="Counting: the end of the run.")] = 480.0
    unaligned: Annotated[bool, typer.Option("--unaligned", help="Do not log the starts of windows.")] = False
    encoding: Annotated[EncodingName, typer.Option("--encoding", help="Of the tables.")] = EncodingName.jsonl

    def simulated(self) -> tuple[Crashed, int, int]:
        """Return the run, the period of its source and the interval of its checkpoints, both in ms."""
        from cklog.simulate.odysseus import crash as odysseus

        if self.query == OdysseusName.figure:
            how = odysseus.Crash(self.recovery.value, 2000, 3000, 5000, not self.unaligned)
            return odysseus.run(odysseus.figure_query(), odysseus.figure_elements(), how), 1000, 2000
        period, interval = _ms("--period", self.period / 1000), _ms("--interval", self.interval)
        slide = period if self.slide is None else _ms("--slide", self.slide)
        window, crash = _ms("--window", self.window), _ms("--crash-at", self.crash)
        restart = _ms("--restart-at", self.restart)
        if not slide <= window:
            raise UsageError(f"--slide {slide / 1000:g}: more than the window")
        how = odysseus.Crash(self.recovery.value, crash // interval * interval, crash, restart, not self.unaligned)
        end = _ms("--end", self.end)
        if end // period > _MOST_ELEMENTS:
            raise UsageError(f"--end {self.end:g}: more than {_MOST_ELEMENTS:,} elements, which are held in memory")
        elements = odysseus.counted_elements(period, end)
        return odysseus.run(odysseus.counting_query(window, slide), elements, how), period, interval


def _ms(option: str, seconds: float) -> int:
    if not 0.001 <= seconds <= _MOST_SECONDS:
        raise UsageError(f"{option}: {seconds:g} s is not from a millisecond to {_MOST_SECONDS:,} s")
    return round(seconds * 1000)


@flattened
def odysseus(asked: RunOptions, printed: PrintOptions) -> None:
    """A query without distribution that crashes and recovers, really run: missing, wrong and doubled results.

    The defaults are those of the paper's evaluation (Brand, Grawunder and Appelrath, BTW 2017, section 6).
    """
    from cklog.simulate.odysseus.files import odysseus_answer, write

    printed.chosen()
    if bool(asked.folder) == asked.no_log:
        raise UsageError("give a new FOLDER, or --no-log for the figures alone")
    crashed, period, interval = asked.simulated()
    if asked.folder:
        write(asked.folder, crashed, period, interval, asked.encoding.value)
    printed.show(odysseus_answer(asked.folder, asked.query.value, crashed))

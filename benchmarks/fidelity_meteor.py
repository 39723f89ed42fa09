"""Meteor Shower's numbers beside cklog's: `python benchmarks/fidelity_meteor.py [PART …]`.

PART is one of `table1` (failures of a data center), `bytes` (what application-aware checkpoints save on the state sizes
of Figure 5), `below` (the threshold taken literally), `ratios` (the paper's percentages against each other) and
`preservation` (what operators or sources alone preserve, from channel logs); all of them without one. Prints rows of
Markdown. `docs/fidelity.md` shows what comes out, and
`tests/unit/advise/test_figures.py` holds it. Nothing is fitted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cklog.advise.timing.answer import TimingAdvice, TimingQuestion, advise_timing
from cklog.advise.timing.choice import choose, threshold
from cklog.advise.timing.state_sizes import Sizes, total
from cklog.model.names import Subtask
from cklog.rounds.sweep import AFN100, RACK_FAILURES, RACKS

MB = 1_000_000

NODES, PER_RACK = 2400, 80

NETWORK = {
    "rewiring, 5% of the nodes": 0.05 * NODES,
    "20 rack failures": RACK_FAILURES * PER_RACK,
    "5 unsteady racks": 5 * PER_RACK,
    "15 router failures, 10% of the nodes each": 15 * 0.1 * NODES,
    "8 maintenances, 10% of the nodes each": 8 * 0.1 * NODES,
}
"""Node failures in a year by section II-B1; every one of its causes takes many nodes at once."""


@dataclass(frozen=True, slots=True)
class App:
    """State sizes of an application as section II-B2 tells them, in MB, and what it says that aware checkpoints save.

    `cycle_s` is how long the state grows before it is dropped: N = 10 minutes in TMI, 10 to 40 s in SignalGuru; of BCP
    nothing is said, and with less than a checkpoint period it makes no difference.
    """

    least: int
    most: int
    average: int
    cycle_s: int
    saved: int


APPS = {
    "TMI": App(0, 300, 150, 600, 100),
    "BCP": App(100, 700, 400, 100, 50),
    "SignalGuru": App(200, 2000, 1000, 40, 80),
}

PERIOD_S = 200
"""The paper's default, three checkpoints in the ten minutes of Figures 12 and 13."""


def failures() -> tuple[float, float, float]:
    """Return failures of a hundred nodes a year: of the network by the text, of all causes by Table I, with a rack."""
    network = 100 * sum(NETWORK.values()) / NODES
    return network, sum(AFN100.values()), 100 * NETWORK["20 rack failures"] / NODES


def table_1() -> Iterator[str]:
    """Yield the rows of Table I that follow from the text."""
    network, all_causes, racks = failures()
    yield f"| network failures in a year, {NODES} nodes | 7640 | {sum(NETWORK.values()):.0f} |"
    yield f"| AFN100 of the network | > 300 | {network:.0f} |"
    yield f"| failures of a node in a year, middle of the ranges | | {all_causes / 100:.1f} |"
    yield f"| among them, failures of its rack | | {racks / 100:.2f} |"
    yield f"| failures of a rack in a year, {RACK_FAILURES} of {RACKS} racks | | {RACK_FAILURES / RACKS:.2f} |"


def sawtooth(app: App, begin_s: int, length_s: int) -> Sizes:
    """Return state that grows evenly from its least to its most and is dropped at once, sampled every second."""
    at = (begin_s + np.arange(length_s + 1)) % app.cycle_s
    size = app.least + (app.most - app.least) * at / (app.cycle_s - 1)
    return Sizes((Subtask("state", 0),), np.array([0, length_s + 1]), 1000 * np.arange(length_s + 1), size * MB)


def advised(app: App, period_s: int, begin_s: int) -> TimingAdvice:
    """Let cklog choose moments as the paper does, twelve periods long, half of them profiled."""
    return advise_timing(sawtooth(app, begin_s, 12 * period_s), TimingQuestion(period_s))


def saved(app: App, period_s: int) -> tuple[float, float]:
    """Return what aware and the best moments save against random ones, over where in a cycle the periods begin."""
    aware, best = [], []
    for begin_s in range(0, app.cycle_s, max(app.cycle_s // 20, 1)):
        found = advised(app, period_s, begin_s)
        ways = {way.name: way.average for way in found.ways}
        aware.append(1 - ways["aware"] / found.expected_random)
        best.append(1 - ways["oracle"] / found.expected_random)
    return float(np.mean(aware)), float(np.mean(best))


def bytes_saved() -> Iterator[str]:
    """Yield what is saved for each application: by the text's own sizes, and by the method on a sawtooth."""
    for name, app in APPS.items():
        for period_s in sorted({PERIOD_S, max(PERIOD_S, app.cycle_s)}):
            aware, best = saved(app, period_s)
            text = 1 - app.least / app.average
            yield f"| {name}, period {period_s} s | {app.saved}% | {text:.0%} | {aware:.0%} | {best:.0%} |"


def below() -> Iterator[str]:
    """Yield what a period takes whose least sum is s_max itself, at or below s_max, and strictly below it."""
    sums = np.array([300, 100, 300, 130, 300, 130, 310.0]) * MB
    time, bounds = 1000 * np.arange(len(sums)), np.array([0, 2000, 4000, 6000])
    trace = Sizes((Subtask("state", 0),), np.array([0, len(sums)]), time, sums)
    s_max = threshold([100 * MB, 130 * MB]).s_max
    for word, limit in (("at or below", s_max), ("below", s_max - 1)):
        last = choose(trace, total(trace, bounds), limit, bounds)[-1]
        taken = sums[last.time // 1000] / MB
        yield f"| s_max {s_max / MB:.0f} MB, alert {word} it | {taken:.0f} MB{', forced' if last.forced else ''} |"


def ratios() -> Iterator[str]:
    """Yield what the averages of sections I and IV say of each other."""
    yield f"| MS-src over the baseline at 3 checkpoints, from 226%, 28% and 14% | +{3.26 / 1.28 / 1.14 - 1:.0%} |"
    yield f"| MS-src+ap over the baseline at 3 checkpoints, from 226% and 14% | +{3.26 / 1.14 - 1:.0%} |"
    yield f"| aware over oracle, checkpoint time, from 66% and 69% | +{0.34 / 0.31 - 1:.0%} |"
    yield f"| aware over oracle, recovery time, from 59% and 63% | +{0.41 / 0.37 - 1:.0%} |"


def preserved(folder: str) -> tuple[Tally, Tally]:
    """Count what input and source preservation save of a native run whose `channels/` has every message as JSON lines.

    Input preservation: every operator saves what it sends. Source preservation: the operators that receive nothing do.
    """
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(folder, "channels").glob("*.jsonl"))]
    messages = [json.loads(line) for text in texts for line in text.splitlines()]
    ends = [[end.split("/")[0] for end in message["channel"].split("->")] for message in messages]
    receivers = {receiver for _, receiver in ends}
    at_sources = [m for m, (sender, _) in zip(messages, ends, strict=True) if sender not in receivers]
    every, few = (Tally(len(some), sum(m["bytes"] for m in some)) for some in (messages, at_sources))
    return every, few


class Tally(NamedTuple):
    """Messages, and their bytes."""

    messages: int
    bytes: int


def preservation() -> Iterator[str]:
    """Yield what both kinds of preservation save of the samples that log every channel."""
    for name in ("uncoordinated-join", "raw-events"):
        every, few = preserved(f"sample_logs/{name}")
        cells = f"{every.messages} messages, {every.bytes} B | {few.messages} messages, {few.bytes} B"
        yield f"| {name} | {cells} | {every.bytes / few.bytes:.2f} |"


PARTS = {
    "table1": ("| Table I and section II-B1 | paper | from its figures |", table_1),
    "bytes": ("| checkpointed bytes saved against random | paper | its sizes | aware | oracle |", bytes_saved),
    "below": ("| a period that never falls below s_max | takes |", below),
    "preservation": ("| sample | input preservation | source preservation | times |", preservation),
    "ratios": ("| the paper's averages | imply |", ratios),
}


def main() -> None:
    """Print the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    for name in parser.parse_args().parts or PARTS:
        head, rows = PARTS[name]
        print(head, "|" + "---|" * (head.count("|") - 1), *rows(), "", sep="\n")


if __name__ == "__main__":
    main()

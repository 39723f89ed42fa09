"""CheckMate's tables beside cklog's simulation of them: `python benchmarks/fidelity_checkmate.py [TABLE …]`.

TABLE is one of `2`, `3`, `4`, `8` and `12` (figures), `rounds` (Table III with other moments of the first round),
`failure` (the moment of the failure that Table IV implies) and `load` (how busy the hot worker of Figure 12 is); all of
them without one. Prints rows of Markdown: the paper's number, cklog's, and how far they are apart. `docs/checkmate.md`
shows them, and `tests/property/simulate/test_checkmate_figures.py` tests them.

Fitted or chosen after a look at the results: a column of Table II, which says so; the moment of the first coordinated
round (Table III); the moment of the failure (Table IV); and the reading of orders in turn (Figure 12).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from cklog.simulate.dataflow.journal import Figures
from cklog.simulate.dataflow.queries import CYCLIC, NEXMARK, DataflowQuery
from cklog.simulate.dataflow.run import simulate
from cklog.simulate.dataflow.setting import DataflowSetting
from cklog.simulate.dataflow.wire import hmnr_bytes

PROTOCOLS = ("unc", "cic-hmnr", "coor")

TOTALS = {
    "q1": {"unc": {10: 303, 50: 1437}, "cic-hmnr": {10: 285, 50: 1428}, "coor": {10: 240, 50: 1200}},
    "q3": {"unc": {10: 455, 50: 2399}, "cic-hmnr": {10: 471, 50: 2517}, "coor": {10: 400, 50: 2000}},
    "q8": {"unc": {10: 384, 50: 1924}, "cic-hmnr": {10: 386, 50: 1920}, "coor": {10: 360, 50: 1800}},
    "q12": {"unc": {10: 282, 50: 1446}, "cic-hmnr": {10: 282, 50: 1451}, "coor": {10: 240, 50: 1200}},
}
"""Table III, total checkpoints."""

INVALID = {
    "q1": {"unc": {10: 0, 50: 0}, "cic-hmnr": {10: 0, 50: 0}, "coor": {10: 0, 50: 0}},
    "q3": {"unc": {10: 4, 50: 3}, "cic-hmnr": {10: 3, 50: 4}, "coor": {10: 0, 50: 0}},
    "q8": {"unc": {10: 2, 50: 2}, "cic-hmnr": {10: 3, 50: 3}, "coor": {10: 0, 50: 0}},
    "q12": {"unc": {10: 3, 50: 3}, "cic-hmnr": {10: 4, 50: 3}, "coor": {10: 0, 50: 0}},
}
"""Table III, invalid checkpoints in whole percent."""

RATIOS = {
    "q1": {"unc": {10: 1.00, 50: 1.00}, "cic-hmnr": {10: 2.10, 50: 2.53}, "coor": {10: 1.00, 50: 1.00}},
    "q3": {"unc": {10: 1.00, 50: 1.01}, "cic-hmnr": {10: 1.82, 50: 2.58}, "coor": {10: 1.00, 50: 1.00}},
    "q8": {"unc": {10: 1.00, 50: 1.01}, "cic-hmnr": {10: 1.74, 50: 2.49}, "coor": {10: 1.00, 50: 1.00}},
    "q12": {"unc": {10: 1.00, 50: 1.00}, "cic-hmnr": {10: 1.79, 50: 2.58}, "coor": {10: 1.00, 50: 1.00}},
}
"""Table II, bytes relative to a run without checkpoints."""

CYCLIC_INVALID = {"unc": {5: 1.4, 10: 1.4}, "cic-hmnr": {5: 1.7, 10: 1.6}}
"""Table IV, invalid checkpoints of the cyclic query in percent."""

HOT = (0.0, 0.1, 0.2, 0.3)

CALIBRATED = ("q1", "q3")


@cache
def run(
    query: DataflowQuery,
    protocol: str,
    workers: int,
    seed: int = 1,
    rate: float = 0.0,
    load: float = 0.8,
    hot: float = 0.0,
    failure_s: float = 0.0,
    orders_first: bool = False,
) -> Figures:
    """Simulate a run as the testbed does: under HMNR every operator has a timer of its own, otherwise every worker."""
    asked = DataflowSetting(
        query,
        protocol,
        workers,
        rate=rate or query.rate,
        failure_s=failure_s or query.failure_s,
        first_round_s=query.first_round_s,
        load=load,
        hot_items=hot,
        seed=seed,
        own_timers=protocol == "cic-hmnr",
        orders_first=orders_first,
    )
    return simulate(asked)


def percent(figures: Figures) -> float:
    """Return the share of checkpoints that the failure's line rolls past, in percent."""
    return 100 * figures.rolled_past / figures.checkpoints


def percent_between(figures: Figures) -> float:
    """Return the same as the testbed's coordinator counts it: channels inside a worker are left out of the graph."""
    return 100 * figures.rolled_past_between_workers / figures.checkpoints


def percent_useless(figures: Figures) -> float:
    """Return the share of checkpoints that are on a Z-cycle, in percent."""
    return 100 * figures.useless / figures.checkpoints


# --- Table II


def added_bytes(query: str, workers: int) -> tuple[float, float]:
    """Return what HMNR adds to a message as its dicts pickle, and what the paper's ratio says that it adds.

    The latter in messages of the mean size of the query's.
    """
    figures = run(NEXMARK[query], "cic-hmnr", workers)
    mean = figures.payload_bytes / figures.messages
    names = [operator.called for operator in NEXMARK[query].operators]
    return hmnr_bytes(names, workers), (RATIOS[query]["cic-hmnr"][workers] - 1) * mean


def calibrated_bytes() -> tuple[float, float]:
    """Return what HMNR would add to a message, a part of its own and one per instance: least squares on Q1 and Q3."""
    cells = [(query, workers) for query in CALIBRATED for workers in (10, 50)]
    instances = [len(NEXMARK[query].operators) * workers for query, workers in cells]
    wanted = [added_bytes(query, workers)[1] for query, workers in cells]
    own, each = np.linalg.lstsq(np.column_stack([np.ones(len(cells)), instances]), np.array(wanted), rcond=None)[0]
    return float(own), float(each)


def table_2_row(query: str, workers: int) -> str:
    """Return a row of Table II for HMNR: paper, as pickled, by how much that is off; calibrated, and by how much."""
    figures = run(NEXMARK[query], "cic-hmnr", workers)
    paper, found = RATIOS[query]["cic-hmnr"][workers], figures.ratio or 0.0
    mean = figures.payload_bytes / figures.messages
    own, each = calibrated_bytes()
    fitted = 1 + (own + each * len(NEXMARK[query].operators) * workers) / mean
    role = "calibrated" if query in CALIBRATED else "predicted"
    cells = (f"{mean:.0f}", f"{added_bytes(query, workers)[0]:.0f}", f"{paper:.2f}", f"{found:.2f}")
    ends = (f"{found / paper - 1:+.0%}", f"{fitted:.2f} ({role})", f"{fitted / paper - 1:+.0%}")
    return f"| {query.upper()} | {workers} | {' | '.join((*cells, *ends))} |"


def table_2_rest(workers: int) -> str:
    """Return a row with the ratios of UNC and COOR: the paper's / the simulation's, by query."""
    cells = [
        f"{RATIOS[q][p][workers]:.2f} / {run(NEXMARK[q], p, workers).ratio:.3f}"
        for p in ("unc", "coor")
        for q in NEXMARK
    ]
    return f"| {workers} | {' | '.join(cells)} |"


# --- Tables III and IV


def table_3_row(query: str, workers: int, protocol: str) -> str:
    """Return a row of Table III: the paper's total and share; cklog's total, exact share, and share by its rule."""
    found = run(NEXMARK[query], protocol, workers)
    total, share = TOTALS[query][protocol][workers], INVALID[query][protocol][workers]
    cells = (f"{total} ({share}%)", f"{found.checkpoints}", f"{percent(found):.1f}%", f"{percent_between(found):.1f}%")
    return f"| {query.upper()} | {workers} | {protocol} | {' | '.join(cells)} |"


def feedback(figures: Figures) -> int:
    """Return how many messages came back to the join."""
    return sum(edge.messages for edge in figures.edges if (edge.sender, edge.receiver) == ("project", "join"))


def table_4_row(workers: int, protocol: str, rate: float, keeps_sources: bool, failure_s: float = 48.0) -> str:
    """Return a row of Table IV, the means of five seeds: what comes back, rolled past exactly, useless, by its rule."""
    query = replace(CYCLIC, keeps_sources=keeps_sources)
    found = [run(query, protocol, workers, seed, rate, failure_s=failure_s) for seed in range(1, 6)]
    counts = (percent, percent_useless, percent_between)
    shares = [f"{np.mean([share(figures) for figures in found]):.1f}%" for share in counts]
    join = "keeps sources" if keeps_sources else "as published"
    means = " | ".join((f"{np.mean([feedback(figures) for figures in found]):.0f}", *shares))
    setting = f"{workers} | {protocol} | {join} | {rate:g} | {failure_s:g} s"
    return f"| {setting} | {CYCLIC_INVALID[protocol][workers]}% | {means} |"


# --- What was chosen after a look at Tables III and IV

FIRST_ROUNDS_S = (5.0, 10.0)


def rounds_row(query: str, workers: int = 10) -> str:
    """Return a row with the paper's total of COOR, and the simulation's for each moment of the first round."""
    totals = [
        run(replace(NEXMARK[query], first_round_s=first), "coor", workers).checkpoints for first in FIRST_ROUNDS_S
    ]
    chosen = f"{NEXMARK[query].first_round_s:g} s"
    return f"| {query.upper()} | {TOTALS[query]['coor'][workers]} | {' | '.join(map(str, totals))} | {chosen} |"


def checkpoints_implied(workers: int, share: float) -> float:
    """Return how many checkpoints each instance had if `share` percent of all are invalid by the testbed's rule.

    By that rule only operators that take from other workers go back, on every worker but the one whose newest
    checkpoint is the oldest, and by one checkpoint each.
    """
    shuffled = {operator.to for operator in CYCLIC.operators if operator.shuffled}
    invalid = len(shuffled) * (workers - 1)
    return invalid / (share / 100) / (len(CYCLIC.operators) * workers)


def failure_rows(interval_s: float = 5.0) -> Iterator[str]:
    """Yield a row for each cell of Table IV: checkpoints per instance, from their rounding, and the failure's moment.

    The last row has the mean, and how many an instance has until either reading of the paper's "48th second".
    """
    implied = []
    for protocol, cells in CYCLIC_INVALID.items():
        for workers, share in cells.items():
            implied.append(checkpoints_implied(workers, share))
            least, most = (checkpoints_implied(workers, share + by) for by in (0.05, -0.05))
            bounds = f"{implied[-1]:.1f} | {least:.1f} to {most:.1f}"
            yield f"| {workers} | {protocol} | {share}% | {bounds} | {implied[-1] * interval_s:.0f} s |"
    mean = float(np.mean(implied))
    readings = ", ".join(f"{at / interval_s:.1f} at {at:g} s" for at in FAILURES_S)
    yield f"| mean | | | {mean:.1f} | {readings} | {mean * interval_s:.0f} s |"


FAILURES_S = (48.0, 78.0)
"""The "48th second" of the cyclic query's run (section VII), from the deployment or from the end of the warm-up."""


# --- Figures 8 and 12


def figure_8_row(query: str, workers: int = 10) -> str:
    """Return a row of Figure 8: mean time of a checkpoint under UNC and of a round under COOR, and their ratio."""
    unc, coor = (run(NEXMARK[query], protocol, workers).checkpointing_ms or 0.0 for protocol in ("unc", "coor"))
    return f"| {query.upper()} | {workers} | {unc:.1f} | {coor:.1f} | {coor / unc:.0f} |"


def hot_worker_load(query: str, hot: float, load: float, workers: int = 10) -> float:
    """Return the share of its time that the records of the hot item's worker take, if messages take equally long."""
    asked = NEXMARK[query]
    flow = {operator.name: operator.share for operator in asked.operators}
    for operator in asked.operators:
        if operator.share:
            more = hot * (workers - 1) if operator.hot else 0.0
            to, passed = operator.to, operator.share * more
            while to and operator.shuffled:
                flow[to] = flow.get(to, 0.0) + passed
                after = next(o for o in asked.operators if o.name == to)
                to, passed = after.to, passed * after.passes
    extra = sum(flow.values()) - sum(operator.share for operator in asked.operators)
    return load * (1 + extra / asked.handled())


def figure_12_row(query: str, load: float, protocol: str, orders_first: bool = False) -> str:
    """Return a row of Figure 12: mean time of a checkpoint or round, and median latency, for 0 to 30 % of hot items."""
    found = [
        run(NEXMARK[query], protocol, 10, load=load, hot=hot, failure_s=90.0, orders_first=orders_first) for hot in HOT
    ]
    times = [f"{f.checkpointing_ms:.0f} / {f.latency_p50_ms:.0f}" if f.checkpointing_ms else "none" for f in found]
    return f"| {query.upper()} | {load:.0%} | {protocol} | {' | '.join(times)} |"


def figure_12_times(query: str, orders_first: bool) -> str:
    """Return how many times as long a round and the median latency are at 80% load with 10% of hot items."""
    even, skewed = (
        run(NEXMARK[query], "coor", 10, hot=hot, failure_s=90.0, orders_first=orders_first) for hot in (0.0, 0.1)
    )
    rounds = (skewed.checkpointing_ms or 0.0) / (even.checkpointing_ms or 1.0)
    latency = (skewed.latency_p50_ms or 0.0) / (even.latency_p50_ms or 1.0)
    return f"| {query.upper()} | {'first' if orders_first else 'in turn'} | {rounds:.0f} | {latency:.1f} |"


def hot_load_row(query: str, load: float) -> str:
    """Return a row with the load of the hot item's worker for 0 to 30 % of hot items."""
    return f"| {query.upper()} | {load:.0%} | {' | '.join(f'{hot_worker_load(query, hot, load):.0%}' for hot in HOT)} |"


def rows(table: str, sizes: tuple[int, ...]) -> Iterator[str]:
    """Yield the rows of a table, those of every size of cluster."""
    if table == "2":
        own, each = calibrated_bytes()
        yield f"Calibrated on Q1 and Q3: {own:.0f} bytes and {each:.2f} per instance"
        yield from (table_2_row(query, workers) for workers in sizes for query in NEXMARK)
        yield from (table_2_rest(workers) for workers in sizes)
    elif table == "3":
        yield from (table_3_row(q, workers, p) for workers in sizes for q in NEXMARK for p in PROTOCOLS)
    elif table == "rounds":
        yield from (rounds_row(query) for query in NEXMARK)
    elif table == "failure":
        yield from failure_rows()
    elif table == "8":
        yield from (figure_8_row(query) for query in ("q3", "q8", "q12"))
    elif table == "4":
        for keeps_sources in (True, False):
            for rate in (5.0, 20.0, 80.0):
                for workers in (5, 10):
                    yield from (table_4_row(workers, p, rate, keeps_sources) for p in CYCLIC_INVALID)
        yield from (table_4_row(workers, p, 20.0, True, 78.0) for workers in (5, 10) for p in CYCLIC_INVALID)
    elif table == "12":
        yield from (figure_12_row(q, load, p) for load in (0.5, 0.8) for q in ("q3", "q8", "q12") for p in PROTOCOLS)
        yield "With --orders-first:"
        yield from (figure_12_row(q, load, "coor", True) for load in (0.5, 0.8) for q in ("q3", "q8", "q12"))
        yield "80% load, from 0 to 10% of hot items, by when orders are taken: a round and the median latency, times"
        yield from (figure_12_times(q, first) for first in (False, True) for q in ("q3", "q8", "q12"))
    elif table == "load":
        yield from (hot_load_row(q, load) for load in (0.5, 0.8) for q in ("q3", "q8", "q12"))


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--workers", type=int, choices=(10, 50), help="one size of cluster (Tables II and III)")
    asked = parser.parse_args()
    for table in asked.tables or ("2", "3", "rounds", "failure", "4", "8", "12", "load"):
        print(f"{'Figure' if table in ('8', '12', 'load') else 'Table'} {table}", flush=True)
        for row in rows(table, (asked.workers,) if asked.workers else (10, 50)):
            print(row, flush=True)


if __name__ == "__main__":
    main()

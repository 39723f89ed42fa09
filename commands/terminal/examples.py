"""Two examples for each command, which a test runs, and what its exit codes mean."""

from __future__ import annotations

from collections.abc import Mapping

_EXAMPLES: Mapping[str, tuple[str, str]] = {
    "": ("recovery-line sample_logs/flink-orders", "inspect sample_logs/uncoordinated-join"),
    "recovery-line": (
        "sample_logs/flink-orders",
        "sample_logs/uncoordinated-join --failed join/1 --explain",
    ),
    "verify": (
        "sample_logs/checkmate-uncoordinated --restored sample_logs/checkmate-newest.json",
        "sample_logs/uncoordinated-join --line sample_logs/uncoordinated-join/expected.json --maximal",
    ),
    "replay": ("sample_logs/uncoordinated-join", "sample_logs/flink-orders --format kafka-csv"),
    "runbook": ("sample_logs/kafka-broker", "sample_logs/spark-wordcount --format script"),
    "inspect": ("sample_logs/kafka-broker", "sample_logs/domino-cycle --metrics"),
    "graph": ("sample_logs/uncoordinated-join", "sample_logs/domino-cycle --format mermaid"),
    "z-cycles": ("sample_logs/domino-cycle", "sample_logs/reachability-cic --audit-cic"),
    "compare": (
        "sample_logs/domino-cycle sample_logs/uncoordinated-join",
        "sample_logs/reachability-uncoordinated sample_logs/reachability-cic",
    ),
    "chain": ("sample_logs/incremental", "sample_logs/patent-store --operator totals --checkpoint 8"),
    "retention": ("sample_logs/flink-orders --keep 1", "sample_logs/spark-state-hdfs --format script"),
    "rounds": ("sample_logs/token-rounds --failed-nodes n2,n3", "sample_logs/token-rounds --sweep rack"),
    "extent": ("sample_logs/cec-aggregate --operator agg1", "sample_logs/cec-aggregate --operator agg1 --over-time"),
    "eventual-checkpoint": (
        "sample_logs/cec-aggregate --operator agg1",
        "sample_logs/cec-crashed --operator agg1 --format csv",
    ),
    "impact": ("sample_logs/spark-wordcount", "sample_logs/odysseus-precise --recovery rollback"),
    "latency": (
        "sample_logs/raw-events --step 5",
        "sample_logs/sink-latency --results sample_logs/sink-latency/results --event-time created",
    ),
    "scan": ("sample_logs --sort action", "sample_logs --format prometheus"),
    "report": ("sample_logs/uncoordinated-join --format md", "sample_logs/flink-orders --format md --brief"),
    "diff": (
        "sample_logs/uncoordinated-join sample_logs/uncoordinated-join-parquet",
        "sample_logs/domino-cycle sample_logs/domino-cycle --exit-code",
    ),
    "explain": ("torn-tail", "3"),
    "advise": ("delta sample_logs/incremental", "protocol sample_logs/uncoordinated-join"),
    "advise extent": (
        "sample_logs/cec-aggregate --operator agg1",
        "sample_logs/cec-aggregate --operator agg1 --q 1x,4x --u none --ci 5,10",
    ),
    "advise delta": ("sample_logs/incremental", "sample_logs/incremental --operator join --max-restore-time 0.25"),
    "advise timing": ("sample_logs/meteor-shower --period 5", "sample_logs/meteor-shower --period 5 --format csv"),
    "advise protocol": ("sample_logs/uncoordinated-join", "sample_logs/domino-cycle --interval 2,4 --mtbf 168"),
    "simulate": ("cec --no-log --tuples 20000 --keys 100", "nexmark --no-log --query q3 --rate 1"),
    "simulate cec": (
        "--no-log --tuples 20000 --keys 100",
        "--no-log --tuples 20000 --keys 100 --q 200,400",
    ),
    "simulate nexmark": ("--no-log --query q3 --rate 1", "--no-log --protocol coor --workers 2 --rate 5"),
    "simulate cyclic": ("--no-log --workers 2", "--no-log --workers 2 --protocol cic-hmnr"),
    "simulate odysseus": ("--no-log --query figure", "--no-log --recovery gap --period 1000"),
}
"""By command: its arguments in two examples."""

_ANSWERED = {0: "answered; findings, if there are any, are warnings at the most"}
_JUDGED = {
    3: "answered, with a finding of severity error",
    5: "evidence is missing: the answer is a bound, or there is none",
}
_UNRECOVERABLE = {4: "nothing is left but the initial state, or not what was asked for"}
_REFUSED = {
    2: "wrong usage",
    65: "the input is damaged beyond an answer, or over a budget",
    66: "there is no such path, operator or checkpoint; or several runs, and none chosen",
}
_NO_ENGINE = {69: "Spark was asked for, and cannot be started or was lost"}
_UNWRITTEN = {73: "the output cannot be written"}
_READS = _ANSWERED | _JUDGED | _REFUSED | _NO_ENGINE | _UNWRITTEN

_EXITS: Mapping[str, Mapping[int, str | None]] = {
    "": _UNRECOVERABLE,
    **dict.fromkeys(
        ("recovery-line", "replay", "report", "runbook", "impact", "graph", "z-cycles", "chain", "rounds"),
        _UNRECOVERABLE,
    ),
    "verify": {
        0: "proved: the line is consistent and can be restored",
        3: "refuted, or a finding of severity error",
        5: "neither proved nor refuted: evidence is missing",
    },
    "scan": {
        0: "answered, and every run could be restarted",
        3: "a run has a finding of severity error; by --fail-on another finding or action",
        4: "a run can only start over, and none has exit 5",
        5: "evidence is missing about a run, or it gave no answer; or the folder may not be read",
        66: "there is no such folder, or no run is below it",
    },
    "extent": {3: "answered, with a finding of severity error, such as a broken --max-extent"},
    "diff": {
        0: "answered: the same, or what is different",
        1: "answered, and something is different; only with --exit-code",
        3: None,
        65: "a file is no answer, or of another version; or a run is damaged beyond an answer",
        66: "there is no such file or folder; or several runs, and none chosen",
    },
    "explain": {
        0: "answered",
        2: "wrong usage, or there is no such id",
        3: None,
        5: None,
        65: None,
        66: None,
        69: None,
    },
}
"""What differs from `_READS`; None: the command never ends so."""


def examples_of(command: str) -> tuple[str, ...]:
    """Return the examples of a command (`advise delta`; "" is `cklog` itself) as one types them."""
    return tuple(" ".join(("cklog", command, rest)).replace("  ", " ") for rest in _EXAMPLES.get(command, ()))


def exits_of(command: str) -> dict[int, str]:
    """Return what each exit code of a command means, sorted as an answer's own, then refusals."""
    if command.startswith("simulate"):
        return {0: "simulated", 2: "wrong usage", **_UNWRITTEN}
    found = {**_READS, **_EXITS.get(command, {})}
    return {code: meaning for code in (0, 1, 3, 4, 5, 2, 65, 66, 69, 73) if (meaning := found.get(code)) is not None}


def commands_with_examples() -> tuple[str, ...]:
    """Return every command that has examples."""
    return tuple(_EXAMPLES)

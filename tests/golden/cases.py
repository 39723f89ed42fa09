"""The commands whose answers are golden: by the file that holds the answer, and exit codes other than 0."""

from __future__ import annotations

MAP = "--map file:///srv/cklog-sample/wordcount=sample_logs/spark-wordcount"
FLINK = "sample_logs/flink-orders --map file:///srv/cklog-sample/flink-orders=sample_logs/flink-orders"
STREAMS = "sample_logs/kafka-streams-state/state --kafka sample_logs/kafka-streams-state/kafka"
BINLOG = "--source-from orders-mysql=mysql-bin.000124:4"
HDFS = "sample_logs/spark-state-hdfs --map file:///srv/cklog-words/hdfs=sample_logs/spark-state-hdfs"
ROCKSDB = "sample_logs/spark-state-rocksdb --map file:///srv/cklog-words/rocksdb=sample_logs/spark-state-rocksdb"
CHAIN = "sample_logs/spark-chain/clean --with sample_logs/spark-chain/enrich"
LATENCY = "sample_logs/sink-latency --results sample_logs/sink-latency/results --event-time created"
TABLES = "sample_logs/tables"
MOVED = f"--map file:///srv/cklog-sample/tables={TABLES}"
RESTORED = f"{TABLES}/spark-delta-restored/ck --sink orders={TABLES}/spark-delta-restored/table"
HUDI = f"{TABLES}/spark-hudi/ck --sink orders={TABLES}/spark-hudi/table"
OLDER = f"{TABLES}/flink-older-checkpoint/checkpoints --sink db.orders={TABLES}/flink-older-checkpoint/table {MOVED}"
ANSWERED = f"{TABLES}/flink-response-lost/checkpoints --sink orders={TABLES}/flink-response-lost/table {MOVED}"
CASES = {
    "tables-restored.txt": f"recovery-line {RESTORED}",
    "tables-restored.json": f"recovery-line {RESTORED} --json",
    "tables-skipped.txt": f"recovery-line {HUDI}",
    "tables-older.txt": f"recovery-line {OLDER}",
    "tables-older-runbook.md": f"runbook {OLDER} --format md",
    "tables-twice.txt": f"recovery-line {ANSWERED}",
    "connect-runbook.md": f"runbook sample_logs/connect-offsets/topic {BINLOG} --format md",
    "sample_logs/kafka-broker/expected.json": "recovery-line sample_logs/kafka-broker --json",
    "sample_logs/checkmate-uncoordinated/expected.json": (
        "recovery-line sample_logs/checkmate-uncoordinated --explain --json"
    ),
    "sample_logs/kafka-streams-state/expected.json": f"recovery-line {STREAMS} --json",
    "sample_logs/connect-offsets/expected.json": "recovery-line sample_logs/connect-offsets --json",
    "connect.txt": "recovery-line sample_logs/connect-offsets/topic",
    "connect-gone.txt": f"recovery-line sample_logs/connect-offsets/topic {BINLOG}",
    "connect-inspect.txt": "inspect sample_logs/connect-offsets",
    "connect-replay.json": "replay sample_logs/connect-offsets --operator stock-postgres --format connect-json",
    "connect-replay-gone.json": (
        f"replay sample_logs/connect-offsets --operator orders-mysql {BINLOG} --format connect-json"
    ),
    "kafka-broker.txt": "recovery-line sample_logs/kafka-broker",
    "kafka-broker-replay.json": "replay sample_logs/kafka-broker --json",
    "kafka-broker-replay.csv": "replay sample_logs/kafka-broker --operator billing --format kafka-csv",
    "kafka-broker-inspect.txt": "inspect sample_logs/kafka-broker",
    "kafka-streams.txt": f"recovery-line {STREAMS}",
    "checkmate.txt": "recovery-line sample_logs/checkmate-uncoordinated --explain",
    "checkmate-inspect.json": "inspect sample_logs/checkmate-uncoordinated --json",
    "sample_logs/flink-orders/expected.json": f"recovery-line {FLINK} --json",
    "flink.txt": f"recovery-line {FLINK}",
    "flink-moved.txt": "recovery-line sample_logs/flink-orders/125c88b9401f9252baa1b39e412cc4b8/chk-13",
    "flink-at.txt": f"recovery-line {FLINK} --at 125c=5",
    "flink-replay.json": f"replay {FLINK} --against chk-11 --json",
    "flink-replay.csv": f"replay {FLINK} --format kafka-csv",
    "flink-inspect.txt": f"inspect {FLINK} --uid orders --job-log sample_logs/flink-orders/jobmanager.log",
    "flink-retention.txt": f"retention {FLINK}",
    "flink-retention.json": f"retention {FLINK} --json",
    "flink-retention.sh": f"retention {FLINK} --jobs-stopped --drop-broken --format script",
    "sample_logs/domino-cycle/expected.json": "recovery-line sample_logs/domino-cycle --explain --json",
    "sample_logs/uncoordinated-join/expected.json": "recovery-line sample_logs/uncoordinated-join --explain --json",
    "sample_logs/raw-events/expected.json": "recovery-line sample_logs/raw-events --explain --json",
    "sample_logs/uncoordinated-join-parquet/expected.json": (
        "recovery-line sample_logs/uncoordinated-join-parquet --explain --json"
    ),
    "sample_logs/spark-wordcount/expected.json": f"recovery-line sample_logs/spark-wordcount {MAP} --json",
    "sample_logs/cec-aggregate/expected.json": (
        "eventual-checkpoint --operator agg1 sample_logs/cec-aggregate --forward --json"
    ),
    "sample_logs/reachability-uncoordinated/expected.json": (
        "recovery-line sample_logs/reachability-uncoordinated --json"
    ),
    "sample_logs/reachability-cic/expected.json": "recovery-line sample_logs/reachability-cic --json",
    "sample_logs/q3-coordinated/expected.json": "recovery-line sample_logs/q3-coordinated --json",
    "audit-cic.txt": "z-cycles sample_logs/reachability-cic --audit-cic",
    "rounds.txt": "recovery-line sample_logs/q3-coordinated",
    "rounds-metrics.txt": "inspect sample_logs/q3-coordinated --metrics",
    "reachability-failed-at.txt": "recovery-line sample_logs/reachability-uncoordinated --failed-at all",
    "reachability-z-cycles.json": "z-cycles sample_logs/reachability-uncoordinated --limit 5 --json",
    "sample_logs/sink-latency/expected.json": f"latency {LATENCY} --json",
    "latency.txt": f"latency {LATENCY}",
    "latency.csv": f"latency {LATENCY} --format csv",
    "latency-by-silence.txt": "latency sample_logs/sink-latency/results --results sample_logs/sink-latency/results "
    "--event-time created --factor 2 --steps 5",
    "latency-messages.txt": "latency sample_logs/raw-events --step 5 --at 2026-01-01T00:00:12",
    "latency-messages.json": "latency sample_logs/raw-events --operator route --step 5 --json",
    "cec-recovery-line.txt": "recovery-line sample_logs/cec-aggregate",
    "cec-recovery-line.json": "recovery-line sample_logs/cec-crashed --json",
    "cec-inspect.txt": "inspect sample_logs/cec-crashed",
    "cec-extent.json": "extent --operator agg1 sample_logs/cec-aggregate --forward --json",
    "cec-extent.txt": "extent --operator agg1 sample_logs/cec-aggregate --forward",
    "cec-extent-parquet.txt": "extent --operator agg1 sample_logs/cec-aggregate-parquet --forward",
    "cec-extent-kafka.txt": "extent --operator agg1 sample_logs/cec-aggregate-kafka --forward",
    "cec-crashed-extent.txt": "extent --operator agg1 sample_logs/cec-crashed --forward",
    "cec-crashed.json": "eventual-checkpoint --operator agg1 sample_logs/cec-crashed --forward --json",
    "cec-crashed.md": "eventual-checkpoint --operator agg1 sample_logs/cec-crashed --format md",
    "cec-aggregate.csv": "eventual-checkpoint --operator agg1 sample_logs/cec-aggregate --format csv",
    "domino-explain.txt": "recovery-line sample_logs/domino-cycle --explain",
    "domino-one-failed.json": "recovery-line sample_logs/domino-cycle --failed op1 --explain --json",
    "join-one-failed.txt": "recovery-line sample_logs/uncoordinated-join --failed join/1",
    "join-as-of.json": "recovery-line sample_logs/uncoordinated-join --as-of 2026-01-01T00:00:10Z --json",
    "join-at.txt": "recovery-line sample_logs/uncoordinated-join --at join/0=2",
    "join-unreachable.txt": "recovery-line sample_logs/uncoordinated-join --at join/0=5",
    "join.md": "recovery-line sample_logs/uncoordinated-join --explain --format md",
    "join.csv": "recovery-line sample_logs/uncoordinated-join --format csv",
    "join.jsonl": "recovery-line sample_logs/uncoordinated-join --format jsonl",
    "join-replay.json": "replay sample_logs/uncoordinated-join --json",
    "join-replay.csv": "replay sample_logs/uncoordinated-join --format csv",
    "join-replay-kafka.csv": "replay sample_logs/uncoordinated-join --format kafka-csv",
    "join-replay-delete.json": "replay sample_logs/uncoordinated-join --format kafka-delete-records",
    "join-replay-kcat.sh": "replay sample_logs/uncoordinated-join --format kcat",
    "join-replay-spark.json": "replay sample_logs/uncoordinated-join --format spark-offsets",
    "join-replay-flink.txt": "replay sample_logs/uncoordinated-join --format flink-offsets --topic orders",
    "join-verify.txt": (
        "verify sample_logs/uncoordinated-join --line sample_logs/uncoordinated-join/expected.json --maximal"
    ),
    "join-inspect.json": "inspect sample_logs/uncoordinated-join --json",
    "join-inspect.txt": "inspect sample_logs/uncoordinated-join",
    "join-earliest.txt": "recovery-line sample_logs/uncoordinated-join --at join/0=2 --earliest",
    "join-z-cycles.txt": "z-cycles sample_logs/uncoordinated-join",
    "domino-z-cycles.txt": "z-cycles sample_logs/domino-cycle",
    "domino-z-cycles.json": "z-cycles sample_logs/domino-cycle --json",
    "domino-z-cycles.csv": "z-cycles sample_logs/domino-cycle --format csv",
    "domino-failed-at.txt": "recovery-line sample_logs/domino-cycle --failed-at all",
    "domino-failed-at.csv": "recovery-line sample_logs/domino-cycle --failed-at all --format csv",
    "domino-metrics.txt": "inspect sample_logs/domino-cycle --metrics",
    "compare.txt": "compare sample_logs/domino-cycle sample_logs/uncoordinated-join",
    "docs/domino-cycle.svg": "graph sample_logs/domino-cycle --format svg",
    "docs/folded.svg": "graph sample_logs/reachability-cic --fold --width 1000 --format svg",
    "docs/uncoordinated-join.svg": "graph sample_logs/uncoordinated-join --format svg",
    "domino-graph.dot": "graph sample_logs/domino-cycle --format dot",
    "domino-graph.mmd": "graph sample_logs/domino-cycle --format mermaid",
    "domino-graph.json": "graph sample_logs/domino-cycle --json",
    "join-graph.txt": "graph sample_logs/uncoordinated-join",
    "raw-events.txt": "recovery-line sample_logs/raw-events --explain",
    "raw-events.json": "inspect sample_logs/raw-events --json",
    "wordcount.txt": f"recovery-line sample_logs/spark-wordcount {MAP}",
    "wordcount-inspect.txt": f"inspect sample_logs/spark-wordcount {MAP}",
    "sample_logs/token-rounds/expected.json": "rounds sample_logs/token-rounds --failed-nodes n2,n3 --json",
    "sample_logs/token-rounds-ap/expected.json": "rounds sample_logs/token-rounds-ap --json",
    "sample_logs/spark-chain/expected.json": f"recovery-line {CHAIN} --json",
    "spark-chain.txt": f"recovery-line {CHAIN}",
    "spark-chain.csv": f"recovery-line {CHAIN} --format csv",
    "spark-chain-back.txt": f"recovery-line {CHAIN} --at query/0=2",
    "spark-chain-back.json": f"recovery-line {CHAIN} --at query/0=2 --json",
    "spark-chain-unknown.txt": "recovery-line sample_logs/spark-chain/clean --with sample_logs/spark-wordcount",
    "sample_logs/spark-state-hdfs/expected.json": f"recovery-line {HDFS} --json",
    "sample_logs/spark-state-rocksdb/expected.json": f"recovery-line {ROCKSDB} --json",
    "spark-state-chain.txt": "chain sample_logs/spark-state-hdfs",
    "spark-state-rocksdb-chain.json": "chain sample_logs/spark-state-rocksdb --json",
    "spark-state-inspect.txt": f"inspect {ROCKSDB}",
    "chain.txt": "chain sample_logs/incremental",
    "chain.json": "chain sample_logs/incremental --json",
    "chain.csv": "chain sample_logs/incremental --format csv",
    "chain-checkpoint.txt": "chain sample_logs/incremental --operator join --checkpoint 7",
    "chain-broken.txt": f"chain {FLINK}",
    "chain-read-rate.txt": f"chain {FLINK} --read-rate 100",
    "chain-spark.txt": "chain sample_logs/spark-state-rocksdb",
    "sample_logs/odysseus-precise/expected.json": "impact sample_logs/odysseus-precise --recovery rollback --json",
    "impact-precise.txt": "impact sample_logs/odysseus-precise",
    "impact-rollback.txt": "impact sample_logs/odysseus-precise --recovery rollback",
    "impact-stateless.txt": "impact sample_logs/odysseus-precise --recovery stateless-rollback",
    "impact-gap.txt": "impact sample_logs/odysseus-gap",
    "impact-gap.json": "impact sample_logs/odysseus-gap --json",
    "impact-unknown.txt": "impact sample_logs/odysseus-precise --recovery rollback --checkpoint unknown",
    "impact.csv": "impact sample_logs/odysseus-precise --recovery gap --format csv",
    "impact-wordcount.txt": f"impact sample_logs/spark-wordcount {MAP}",
    "impact-wordcount-at.txt": f"impact sample_logs/spark-wordcount {MAP} --at query/0=3",
    "impact-spark-state.txt": "impact sample_logs/spark-state-hdfs",
    "impact-flink.txt": f"impact {FLINK}",
    "impact-flink-at.json": f"impact {FLINK} --at 125c=11 --json",
    "impact-kafka-broker.txt": "impact sample_logs/kafka-broker",
    "impact-join.json": "impact sample_logs/uncoordinated-join --json",
    "impact-join-guarantee.txt": "impact sample_logs/uncoordinated-join --guarantee",
    "impact-cec.txt": "impact sample_logs/cec-aggregate",
    "token-rounds.txt": "rounds sample_logs/token-rounds --failed-nodes n2,n3",
    "token-rounds-ap.txt": "rounds sample_logs/token-rounds-ap",
    "token-rounds-one.txt": "rounds sample_logs/token-rounds --round 4",
    "token-rounds.csv": "rounds sample_logs/token-rounds --format csv",
    "token-rounds-ap-line.txt": "recovery-line sample_logs/token-rounds-ap",
    "q3-rounds.txt": "rounds sample_logs/q3-coordinated",
    "sample_logs/patent-store/expected.json": "chain sample_logs/patent-store --json",
    "patent-chain.txt": "chain sample_logs/patent-store",
    "patent-chain-8.txt": "chain sample_logs/patent-store --operator totals --checkpoint 8",
    "patent-inspect.txt": "inspect sample_logs/patent-store",
    "patent-retention.txt": "retention sample_logs/patent-store --marked totals/0=1 --marked totals/0=2",
    "flink-retention-keep.txt": f"retention {FLINK} --keep 1",
    "retention-spark.txt": f"retention {HDFS} --keep 2",
    "retention-spark.json": f"retention {HDFS} --keep 2 --json",
    "retention-spark.sh": f"retention {HDFS} --pin query/0=5 --format script",
    "retention-rocksdb.txt": f"retention {ROCKSDB}",
    "retention-join.txt": "retention sample_logs/uncoordinated-join",
    "retention-cec.txt": "retention sample_logs/cec-aggregate",
    "retention-cec.json": "retention sample_logs/cec-aggregate --json",
    "retention-cec-kafka.txt": "retention sample_logs/cec-aggregate-kafka",
    "retention-join.json": "retention sample_logs/uncoordinated-join --json",
    "retention-domino.csv": "retention sample_logs/domino-cycle --format csv",
    "retention-incremental.txt": "retention sample_logs/incremental --keep 3",
    "retention-patent.txt": "retention sample_logs/patent-store --keep 2 --marked figure/0=1",
    "sample_logs/incremental/expected.json": "advise delta sample_logs/incremental --json",
    "sample_logs/meteor-shower/expected.json": "advise timing sample_logs/meteor-shower --period 5 --json",
    "advise-delta.txt": "advise delta sample_logs/incremental",
    "advise-delta-bound.txt": (
        "advise delta sample_logs/incremental --operator join --max-restore-time 0.25 --max-delta 5"
    ),
    "advise-delta.csv": "advise delta sample_logs/incremental --format csv",
    "advise-delta-store.txt": "advise delta sample_logs/patent-store",
    "verify-restored.txt": "verify sample_logs/checkmate-uncoordinated --restored sample_logs/checkmate-newest.json",
    "verify-restored.json": (
        "verify sample_logs/checkmate-uncoordinated --restored sample_logs/checkmate-newest.json --json"
    ),
    "rounds-sweep.txt": "rounds sample_logs/token-rounds --sweep node",
    "rounds-sweep.json": "rounds sample_logs/token-rounds --sweep pair --json",
    "advise-protocol.txt": "advise protocol sample_logs/uncoordinated-join",
    "advise-protocol.json": "advise protocol sample_logs/domino-cycle --interval 2,4 --json",
    "advise-protocol.csv": "advise protocol sample_logs/raw-events --format csv",
    "advise-timing.txt": "advise timing sample_logs/meteor-shower --period 5",
    "advise-timing.csv": "advise timing sample_logs/meteor-shower --period 5 --format csv",
    # last: they tell the sizes of the samples, and answers stand in these
    "scan.txt": "scan sample_logs --sort action",
    "scan.json": "scan sample_logs --json",
}
EXITS = (
    {
        "join-unreachable.txt": 4,
        "flink-at.txt": 4,
        "flink-moved.txt": 5,
        "kafka-broker-replay.csv": 3,
        "impact-wordcount-at.txt": 3,
        "connect-runbook.md": 3,
        "tables-restored.txt": 3,
        "tables-restored.json": 3,
        "tables-older.txt": 3,
        "tables-older-runbook.md": 3,
        "tables-twice.txt": 3,
        "connect-gone.txt": 3,
        "connect-replay-gone.json": 3,
    }
    | dict.fromkeys(
        (
            "sample_logs/kafka-broker/expected.json",
            "kafka-broker.txt",
            "kafka-broker-replay.json",
            "kafka-broker-inspect.txt",
        ),
        3,
    )
    | dict.fromkeys(
        (
            "sample_logs/patent-store/expected.json",
            "patent-chain.txt",
            "impact-kafka-broker.txt",
            "chain-broken.txt",
            "chain-read-rate.txt",
            "patent-inspect.txt",
            "patent-retention.txt",
            "retention-patent.txt",
            "advise-delta-store.txt",
            "verify-restored.txt",
            "verify-restored.json",
        ),
        3,
    )
    | dict.fromkeys(("scan.txt", "scan.json"), 5)
    | dict.fromkeys(("spark-chain-back.txt", "spark-chain-back.json"), 3)
    | {"patent-chain-8.txt": 4, "impact-unknown.txt": 5, "spark-chain-unknown.txt": 5}
    | dict.fromkeys(("sample_logs/kafka-streams-state/expected.json", "kafka-streams.txt"), 3)
    | dict.fromkeys(
        ("cec-crashed-extent.txt", "cec-crashed.json", "cec-crashed.md", "cec-recovery-line.json", "cec-inspect.txt"), 3
    )
)

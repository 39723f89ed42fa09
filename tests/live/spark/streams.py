"""What each query of a campaign does with its records, in the terms of pyspark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.live.spark.kinds import Kind

_SCHEMA = "n LONG, d LONG, k STRING, b LONG, t LONG, dt LONG"


def files(spark: Any, folder: Path, per_batch: int, name: str = "") -> Any:
    """Return the stream of records of a folder, with their times."""
    from pyspark.sql import functions as F

    reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", per_batch)
    if name:
        reader = reader.name(name)
    rows = reader.json(str(folder))
    return rows.withColumn("at", F.timestamp_seconds("t")).withColumn("first", F.timestamp_seconds("dt"))


def rate(spark: Any) -> Any:
    """Return the numbers of a rate source."""
    rates = spark.readStream.format("rate").option("rowsPerSecond", 5).option("numPartitions", 1).load()
    return rates.selectExpr("value AS n")


def rate_per_batch(spark: Any) -> Any:
    """Return the numbers of a source that gives five to each batch."""
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).option("numPartitions", 1)
    return rates.option("startTimestamp", 1_700_000_000_000).load().selectExpr("value AS n")


def stream(spark: Any, home: Path, kind: Kind, per_batch: int) -> Any:
    """Return the kind's stream of results."""
    from pyspark.sql import functions as F

    if kind.query == "rate":
        return rate(spark)
    if kind.query == "rate_per_batch":
        return rate_per_batch(spark)
    first = files(spark, home / "in", per_batch, "orders" if kind.query == "named" else "")
    if kind.query == "mixed":
        return rate(spark).union(first.selectExpr("-1 - n"))
    if kind.query in ("union", "named"):
        second = files(spark, home / "in2", per_batch, "returns" if kind.query == "named" else "")
        both = first.select("n", F.lit("a").alias("s")).union(second.select("n", F.lit("b").alias("s")))
        return both if kind.query == "union" else both.dropDuplicates(["n", "s"])
    return _QUERIES[kind.query](first)


def _map(rows: Any) -> Any:
    return rows.selectExpr("n", "k", "n * 2 AS twice")


def _dedup(rows: Any) -> Any:
    return rows.withWatermark("first", "60 seconds").dropDuplicates(["d", "first"]).select("d")


def _within(rows: Any) -> Any:
    return rows.withWatermark("at", "60 seconds").dropDuplicatesWithinWatermark(["d"]).select("d")


def _counts(rows: Any) -> Any:
    return _summed(rows.groupBy("k"))


def _total(rows: Any) -> Any:
    return _summed(rows.groupBy()).selectExpr("'all' AS k", "c", "s")


def _summed(groups: Any) -> Any:
    from pyspark.sql import functions as F

    return groups.agg(F.count("n").alias("c"), F.sum("n").alias("s"))


def _windows(rows: Any) -> Any:
    from pyspark.sql import functions as F

    windows = rows.withWatermark("at", "10 seconds").groupBy(F.window("at", "20 seconds"), "k")
    return _summed(windows).selectExpr("cast(window.start AS LONG) AS w", "k", "c", "s")


def _chain(rows: Any) -> Any:
    from pyspark.sql import functions as F

    once = rows.withWatermark("at", "10 seconds").dropDuplicates(["n", "at"])
    inner = once.groupBy(F.window("at", "20 seconds"), "k").agg(F.count("n").alias("c"))
    outer = inner.groupBy(F.window("window", "40 seconds")).agg(F.sum("c").alias("c"))
    return outer.selectExpr("cast(window.start AS LONG) AS w", "c")


def _sessions(rows: Any) -> Any:
    from pyspark.sql import functions as F

    sessions = rows.withWatermark("at", "10 seconds").groupBy(F.session_window("at", "15 seconds"), "b")
    return _summed(sessions).select("b", "c", "s")


def _joined(how: str) -> Callable[[Any], Any]:
    """Join records of the first half of a file with those of the second half of the next; some have no partner."""

    def joined(rows: Any) -> Any:
        from pyspark.sql import functions as F

        left = rows.where("n % 4 < 2 AND n % 12 <> 0").withWatermark("at", "20 seconds").alias("a")
        right = rows.where("n % 4 >= 2").withWatermark("at", "20 seconds").alias("b")
        near = F.expr("a.d = b.d AND b.at >= a.at AND b.at < a.at + interval 30 seconds")
        sides = (right, left) if how == "right side" else (left, right)
        found = sides[0].join(sides[1], near, "left_outer" if how == "right side" else "inner")
        return found.select(F.col("a.n").alias("a"), F.col("b.n").alias("b"))

    return joined


def _pandas(rows: Any) -> Any:
    from pyspark.sql.streaming.state import GroupStateTimeout

    def count(key: Any, frames: Iterable[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        c, s = state.get if state.exists else (0, 0)
        for frame in frames:
            c, s = c + len(frame), s + int(frame["n"].sum())
        state.update((c, s))
        yield pd.DataFrame({"k": [key[0]], "c": [c], "s": [s]})

    grouped = rows.groupBy("k")
    types = ("k STRING, c LONG, s LONG", "c LONG, s LONG", "update", GroupStateTimeout.NoTimeout)
    return grouped.applyInPandasWithState(count, *types)


def _tws(rows: Any) -> Any:
    from pyspark.sql.streaming import StatefulProcessor

    class Counting(StatefulProcessor):  # type: ignore[misc]
        """Counts the records of a key and keeps their numbers in a list and a map."""

        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "c LONG")
            self.numbers = handle.getListState("numbers", "n LONG")
            self.by_file = handle.getMapState("by_file", "f LONG", "c LONG")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            import pandas as pd

            c = self.total.get()[0] if self.total.exists() else 0
            for frame in rows:
                for n in frame["n"].tolist():
                    c += 1
                    self.numbers.appendValue((n,))
                    self.by_file.updateValue((n // 4,), (1,))
            self.total.update((c,))
            s = sum(row[0] for row in self.numbers.get())
            yield pd.DataFrame({"k": [key[0]], "c": [c], "s": [s]})

        def close(self) -> None:
            pass

    return rows.groupBy("k").transformWithStateInPandas(Counting(), "k STRING, c LONG, s LONG", "Update", "None")


def _timers(rows: Any) -> Any:
    from pyspark.sql.streaming import StatefulProcessor

    class Bursts(StatefulProcessor):  # type: ignore[misc]
        """Gives the count of a burst of records when its timer ends, long after the last of them."""

        def init(self, handle: Any) -> None:
            self.handle = handle
            self.total = handle.getValueState("total", "c LONG")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            import pandas as pd

            known = self.total.exists()
            c = self.total.get()[0] if known else 0
            self.total.update((c + sum(len(frame) for frame in rows),))
            if not known:
                self.handle.registerTimer((1_700_000_000 + 30 * int(key[0]) + 60) * 1000)
            yield pd.DataFrame({"b": [], "c": []}).astype("int64")

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
            import pandas as pd

            c = self.total.get()[0]
            self.total.clear()
            yield pd.DataFrame({"b": [key[0]], "c": [c]})

        def close(self) -> None:
            pass

    late = rows.withWatermark("at", "10 seconds").groupBy("b")
    return late.transformWithStateInPandas(Bursts(), "b LONG, c LONG", "Append", "EventTime")


_QUERIES: dict[str, Callable[[Any], Any]] = {
    "map": _map,
    "dedup": _dedup,
    "within": _within,
    "counts": _counts,
    "everything": _counts,
    "total": _total,
    "windows": _windows,
    "chain": _chain,
    "sessions": _sessions,
    "join": _joined("inner"),
    "outer": _joined("right side"),
    "pandas": _pandas,
    "tws": _tws,
    "timers": _timers,
}

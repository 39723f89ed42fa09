"""Choose the engine that scans: as `--engine` says, or for `auto` the one that is expected to finish first.

`auto` always answers: where Spark cannot be started, is lost, or cannot see the files, this process reads instead, and
says so. A scan is a pure function of its files, so nothing of a lost one is left in the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from cklog.engine.scan import Engine, Scan, Scanned
from cklog.errors import EngineError, UsageError
from cklog.local_files import is_local
from cklog.model.options import Options

if TYPE_CHECKING:  # most answers read too little to need an estimate
    from cklog.engine.clusters import NamedSpark
    from cklog.engine.costs import Estimate, Work

ESTIMATED_ABOVE = 512 << 20
"""Bytes up to which `auto` reads here without an estimate: that takes less time than Spark takes to start."""

_UNUSED = "--engine spark had no effect: this answer scans nothing that Spark could read, and was made in this process"


class Engines:
    """The engines of one run: each is made when a scan first needs it, and kept until `close`.

    `say` takes lines for stderr.
    """

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say
        self._local: Engine | None = None
        self._spark: Engine | None = None
        self._spark_has_run = False
        self._spark_is_lost = False
        self._lines: set[str] = set()
        self.others: list[Engines] = []  # of other runs that the same answer reads

    @property
    def is_auto(self) -> bool:
        """Whether any engine may answer."""
        return self._options.engine == "auto"

    def for_bytes(self, size: int) -> Engine:
        """Return the engine for a scan of `size` bytes, as they were listed."""
        options = self._options
        if options.engine == "spark":
            return _OnSpark(self)
        least = ESTIMATED_ABOVE if options.spark_above is None else options.spark_above
        if options.engine == "auto" and size > least and not self._spark_is_lost:
            return _Auto(self)
        wants_line = options.verbose or options.master or options.remote
        if options.engine == "auto" and wants_line and not self._spark_is_lost:
            self._tell("local", f"{size >> 20} MiB to read")
        return self.local()

    def for_runs(self, count: int, elsewhere: bool) -> Engine | None:
        """Return the engine that asks so many runs, here or in a store; None: processes of this machine do."""
        if self._options.engine == "spark":
            return _OnSpark(self)
        if self._options.engine == "local" or self._spark_is_lost:
            return None
        from cklog.engine.costs import REQUESTS_PER_RUN, RUNS_PER_TASK, Work

        requests = count * REQUESTS_PER_RUN if elsewhere else 0
        work = Work(runs=count, requests=requests, tasks=-(-count // RUNS_PER_TASK))
        return _OnSpark(self) if self._prefers_spark(work, elsewhere, f"{count} runs to read", False) else None

    def prefers_spark(self, scan: Scan) -> bool:
        """Decide for `auto` whether Spark reads, by the bytes that files really have, and say so."""
        from cklog.engine.sizes import work_of

        work = work_of(scan)
        size = sum(work.bytes.values())
        least = self._options.spark_above
        what = f"{size >> 20} MiB to read"
        if least is not None:
            chosen = size > least
            self._tell("spark" if chosen else "local", f"{what}, {'above' if chosen else 'not above'} --spark-above")
            return chosen
        elsewhere = not any(is_local(split.uri) for split in scan.splits)
        return self._prefers_spark(work, elsewhere, what, size > ESTIMATED_ABOVE)

    def _prefers_spark(self, work: Work, elsewhere: bool, what: str, is_large: bool) -> bool:
        from cklog.engine.costs import SPARK_START_SECONDS, estimate

        named = self._named
        cores = os.cpu_count() or 1
        expected = estimate(work, cores, named.cores(cores), self._running is not None)
        if not named.is_cluster:
            chosen, why = False, "no cluster is named, and on one machine this is faster"
        elif not (elsewhere or named.by_option):
            chosen, why = False, f"nothing says that workers of {named.url} ({named.named_by}) see PATH; --master does"
        else:
            chosen = expected.prefers_spark
            why = f"expected to finish {'before this machine' if chosen else f'before {named.url}'}"
        if chosen or is_large or named.by_option or self._options.verbose or expected.local > SPARK_START_SECONDS:
            place = f"{named.url}, " if chosen else ""
            details = f": {_in_words(expected, named, cores)}" if self._options.verbose else ""
            self._tell("spark" if chosen else "local", f"{place}{what}; {why}{details}")
        return chosen

    def local(self) -> Engine:
        """Return the engine of this process."""
        if self._local is None:
            from cklog.engine.local import LocalEngine

            self._local = LocalEngine(self._options.io_threads)
        return self._local

    def spark(self) -> Engine:
        """Return the engine on Spark, whose session starts with the first scan."""
        if self._spark is None:
            from cklog.engine.spark import SparkEngine
            from cklog.engine.spark_session import SparkOptions

            o, named = self._options, self._named
            master, remote = ("", named.url) if named.is_remote else (named.url, "")
            asked = SparkOptions(master, remote, o.spark_conf, o.verbose, o.engine_timeout, o.ship)
            self._spark = SparkEngine(asked, self._say)
        self._spark_has_run = True
        return self._spark

    def leave_spark(self, why: str | EngineError) -> None:
        """Stop Spark, and let `auto` read in this process from now on; raise the error where Spark was asked for."""
        if not self.is_auto and isinstance(why, EngineError):
            raise why
        self._spark_is_lost = True
        self._tell("local", f"instead of Spark: {why}")
        self.close()

    def unused(self) -> list[str]:
        """Return the line that `--engine spark` had no effect, if nothing has run on Spark since the last call."""
        has_run = self._spark_has_run or any(other._spark_has_run for other in self.others)
        self._spark_has_run = False
        return [] if has_run or self._options.engine != "spark" else [_UNUSED]

    def close(self) -> None:
        """Stop what was started; a later scan starts another."""
        spark, self._spark = self._spark, None
        if spark is not None:
            spark.close()

    @cached_property
    def _running(self) -> NamedSpark | None:
        from cklog.engine.clusters import running_spark

        return running_spark()

    @cached_property
    def _named(self) -> NamedSpark:
        from cklog.engine.clusters import named_spark

        o = self._options
        return self._running or named_spark(o.master, o.remote, dict(o.spark_conf))

    def _tell(self, engine: Literal["local", "spark"], why: str) -> None:
        line = f"engine: {engine} ({why})"
        if line not in self._lines:
            self._lines.add(line)
            self._say(line)


def require_one_place(options: Options) -> None:
    """Raise `UsageError` for options that contradict each other, or an engine that there is not."""
    if options.engine not in ("auto", "local", "spark"):
        raise UsageError(f"--engine {options.engine}: auto, local or spark")
    if options.master and options.remote:
        raise UsageError("--master and --remote name two Sparks", "give one of them")
    if options.engine == "local" and (options.master or options.remote):
        named = "--master" if options.master else "--remote"
        raise UsageError(f"{named} names a Spark, and --engine local uses none", "leave one of them out")


def _in_words(expected: Estimate, named: NamedSpark, cores: int) -> str:
    """Say what was estimated, for `-v`."""
    place = named.url if named.is_cluster else "Spark here"
    return (
        f"{expected.local:.1f} s here on {cores} cores, {expected.spark:.1f} s by {place} on {named.cores(cores)} cores"
    )


class _OnSpark:
    """Spark, which is made for the first scan that has anything to read."""

    name = "spark"

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def run(self, scan: Scan) -> Scanned:
        """Scan on Spark; a scan of nothing needs none."""
        return (self._engines.spark() if scan.splits else self._engines.local()).run(scan)

    def close(self) -> None:
        """Stop Spark."""
        self._engines.close()


class _Auto:
    """The engine that is expected to finish first, chosen scan by scan."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self.name = "local"

    def run(self, scan: Scan) -> Scanned:
        """Scan on Spark if that is expected to finish first, and here if it does not answer or cannot see the files."""
        engines = self._engines
        if scan.splits and engines.prefers_spark(scan):
            try:
                scanned = engines.spark().run(scan)
            except EngineError as error:
                engines.leave_spark(error)
            else:
                unread = [damage.path for damage in scanned.damage if damage.id == "unreadable-file"]
                if not unread:
                    self.name = "spark"
                    return scanned
                engines.leave_spark(f"its workers could not read {unread[0]}")
        self.name = "local"
        return engines.local().run(scan)

    def close(self) -> None:
        """Stop what was started."""
        self._engines.close()

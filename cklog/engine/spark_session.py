"""Sessions of Spark as the options say: on a JVM of this process, local or of a cluster, or on a Connect server."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from cklog.endings import temporary_folder
from cklog.engine.patience import require_listener, within
from cklog.engine.shipping import ship
from cklog.engine.spark_driver import Driver, absolute_paths
from cklog.engine.spark_errors import cause_of
from cklog.errors import EngineError
from cklog.isolation import find_program, run_process
from cklog.progress import stage

_STOP_SECONDS = 20.0

_LONGEST_WAIT = 5.0
"""Seconds between two attempts to reach a Connect server."""

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",  # Python reads; the JVM plans
}
"""Defaults of a session that has its driver here, each of which `--spark-conf` may override."""

_ON_ONE_MACHINE = {
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),  # partial rows are few
    "spark.sql.adaptive.enabled": "false",  # it plans each stage anew, which costs more than the reduce
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""The same, of a local master. Executors on other hosts find no driver on a loopback address, and a cluster's number of
shuffle partitions is its own: adaptive planning makes as few of them as the rows need.
"""


_EXECUTOR_FLAGS = "spark.executor.defaultJavaOptions"

_QUICK_START = "-XX:TieredStopAtLevel=1"
"""Executors of a cluster hand over a few rows, and would spend as much on optimizing that as on the rest."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Which Spark: the options `--master`, `--remote`, `--spark-conf K=V`.

    And whether its own logs are wanted (`-v`), how long nothing may happen (`--engine-timeout`, seconds), and whether
    executors get this package (`--ship`).
    """

    master: str = ""
    remote: str = ""
    conf: tuple[tuple[str, str], ...] = ()
    verbose: bool = False
    timeout: float = 60.0
    ship: bool = False

    @property
    def where(self) -> str:
        """Where it is."""
        return self.remote or self.master or "the local session"


class StartedSession:
    """A session that this process has started, with all that it needs here; `close` leaves nothing of it.

    `spoken` are lines for whoever asked.
    """

    def __init__(self, options: SparkOptions) -> None:
        os.environ["PYSPARK_PYTHON"] = _python_of_workers(options)
        self._options = options
        self._conf = dict(options.conf) if _is_server(options.remote) else absolute_paths(dict(options.conf))
        self._driver: Driver | None = None
        self._held = ExitStack()
        self.spoken: list[str] = []
        try:
            self.session: Any = self._connected() if options.remote else self._launched()
            if options.ship:
                self._ship()
        except BaseException:
            self._end_driver()
            self._held.close()
            raise

    def close(self) -> None:
        """Stop it."""
        with suppress(Exception):  # who does not answer any more has stopped, or is ended now
            within(_STOP_SECONDS, self.session.stop, "stopping Spark", self._end_driver)
        self._end_driver()
        self._held.close()

    def _ship(self) -> None:
        """Put the running package on the executors; on this machine they have it."""
        options = self._options
        if options.where.startswith("local"):
            return
        # executors of a cluster fetch it from there when they need it
        folder = self._held.enter_context(temporary_folder())
        before = [*sys.path]
        try:
            work = partial(ship, self.session, folder, bool(options.remote))
            with stage("shipping cklog"):
                self.spoken += within(options.timeout, work, f"{options.where}: --ship")
        except EngineError:
            raise
        except Exception as error:  # whatever Spark raises
            raise EngineError(f"{options.where}: --ship: {cause_of(error)}", "-v shows Spark's log") from error
        finally:
            sys.path[:] = before  # Spark wants it imported here, too

    def _end_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    def _launch(self, conf: Mapping[str, str]) -> None:
        """Start a JVM, unless there is one: of a notebook, or of `spark-submit` that runs this program."""
        from pyspark import SparkContext

        if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
            self._driver = Driver(conf)
            self._driver.launch(conf, self._options.verbose)

    def _launched(self) -> Any:
        """Start a session with its driver here; a local one survives a killed Python worker (`local[N,4]`)."""
        options = self._options
        require_listener(options.master, options.timeout)
        local = not options.master or options.master.startswith("local")
        if "PYSPARK_GATEWAY_PORT" not in os.environ:
            _require_java()
        master = options.master or f"local[{os.cpu_count() or 1},4]"
        own = {"spark.app.name": "cklog", "spark.master": master, "spark.executorEnv.PYTHONSAFEPATH": "1"}
        conf = {**own, **_QUIET, **(_ON_ONE_MACHINE if local else {}), **self._conf}

        def launched() -> Any:
            self._launch(conf)
            from pyspark.sql import SparkSession

            builder = SparkSession.builder
            for key, value in (conf if local else _flags_of_executors() | conf).items():
                builder = builder.config(key, value)
            return builder.getOrCreate()

        try:
            with _without("SPARK_REMOTE"):
                return within(options.timeout, launched, options.master or "starting Spark", self._end_driver)
        except EngineError:
            raise
        except Exception as error:  # the JVM gateway raises whatever it met; the user needs one line
            raise EngineError(f"Spark did not start: {cause_of(error)}", "-v shows Spark's log") from error

    def _connected(self) -> Any:
        """Connect to the Spark Connect server that `--remote` names; `local[N]` starts one."""
        options = self._options
        conf = self._conf

        def connected() -> Any:
            from pyspark.sql import SparkSession

            if not _is_server(options.remote):
                self._launch({"spark.master": options.remote, **conf})
            builder = SparkSession.builder.remote(options.remote)
            for key, value in conf.items():
                builder = builder.config(key, value)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a setting is not taken is told below
                session = builder.getOrCreate()
            # what models it has cached it would ask the server at the end, however long that does not answer
            at_exit = getattr(session.client, "_on_exit", None)
            if at_exit is not None:
                atexit.unregister(at_exit)
            _give_up_after(session, options.timeout)
            _ = session.version  # the first thing that is asked of the server
            self.spoken += _not_taken(session, conf, options.remote)
            return session

        _require_connect_client(options.remote)
        if not _is_server(options.remote):
            _require_java()
        require_listener(options.remote, options.timeout)
        try:
            with _logs_to(2 if options.verbose else None), _without("MASTER"):
                return within(options.timeout, connected, options.remote, self._end_driver)
        except EngineError:
            raise
        except Exception as error:  # grpc raises its own kinds; the user needs one line
            raise EngineError(f"{options.remote}: {cause_of(error)}", "is the Connect server up?") from error


def _python_of_workers(options: SparkOptions) -> str:
    """Return the Python that workers run; on a cluster a relative path is a place on its machines."""
    python = os.environ.get("PYSPARK_PYTHON") or sys.executable
    is_here = (options.remote or options.master or "local").startswith("local")
    return os.path.abspath(python) if is_here and os.path.dirname(python) else python


def _is_server(remote: str) -> bool:
    """Return whether `--remote` names a running Connect server; `local[N]` is one that this process starts."""
    return bool(remote) and not remote.startswith("local")


def _give_up_after(session: Any, seconds: float) -> None:
    """Have a server that does not answer any more be asked again for so long, and not for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    waited, retries, wait = 0.0, 0, 0.05
    while waited + wait <= seconds:
        waited, retries, wait = waited + wait, retries + 1, min(wait * 4, _LONGEST_WAIT)
    policy = DefaultPolicy(max_retries=retries, max_backoff=int(_LONGEST_WAIT * 1000))  # from 50 ms, four times each
    session.client.set_retry_policies([policy])
    warnings.filterwarnings("ignore", module=r"pyspark\.sql\.connect\.client\.retries")  # the error says it, too


def _flags_of_executors() -> dict[str, str]:
    """Return the setting for executors' JVMs: ours before what the cluster says, here or elsewhere, which so wins."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return {_EXECUTOR_FLAGS: f"{_QUICK_START} {SparkConf().get(_EXECUTOR_FLAGS, '')}".strip()}


def _not_taken(session: Any, conf: Mapping[str, str], remote: str) -> list[str]:
    """Say which settings a Connect server has not taken: those of a running server it passes over without a word."""
    passed = [key for key, value in conf.items() if session.conf.get(key, None) != value]
    return [f"--spark-conf {key}: {remote} takes it only when the server is started; left as it is" for key in passed]


def _require_java() -> None:
    """Raise `EngineError` unless there is a Java 17 or newer: one clear line instead of the launcher's script error."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.abspath(os.path.join(home, "bin", "java")) if home else find_program("java")
    hint = "install Java 17 or newer, or use --engine local, which needs none"
    if not java or not os.path.exists(java):
        raise EngineError("Spark needs Java 17 or newer, and none was found", hint)
    try:
        printed = run_process([java, "-version"]).stderr
    except OSError as error:
        raise EngineError(f"Spark needs Java 17 or newer, and {java} cannot be run: {error.strerror}", hint) from error
    version = printed.partition('version "')[2].partition(".")[0].strip('"')
    if version.isdigit() and int(version) < 17:
        raise EngineError(f"Spark needs Java 17 or newer; {java} is version {version}", hint)


_CONNECT_CLIENT = ("grpc", "grpc_status", "google.rpc", "zstandard")
"""Modules that PySpark's client of Spark Connect imports."""


def _require_connect_client(remote: str) -> None:
    """Raise `EngineError` unless the libraries of a Connect client are installed, before anything is started."""
    missing = [name for name in _CONNECT_CLIENT if not _is_installed(name)]
    if missing:
        what = f"{remote}: Spark Connect needs Python modules that are not installed: {', '.join(missing)}"
        raise EngineError(what, "pip install 'cklog[connect]'")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False


@contextmanager
def _without(variable: str) -> Iterator[None]:
    """Hide an environment variable that names another Spark than the one to start: PySpark refuses to have both."""
    value = os.environ.pop(variable, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[variable] = value


@contextmanager
def _logs_to(target: int | None) -> Iterator[None]:
    """Let libraries write to `target` (None: nowhere) what they would write to stdout and stderr."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY) if target is None else os.dup(target)
    try:
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, sink):
            os.close(descriptor)

"""The JVM of a Spark driver: in a process group and in folders of its own, and gone with both, however we end.

Spark's own way is to end its JVM when this process has ended, and its folders by hooks in it: what is killed in
between, or at once, leaves them. A small process leads the group: it waits for the end of this one, which even SIGKILL
brings, and puts away what is left then.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlsplit
from uuid import uuid4

from cklog.endings import tidy_at_end
from cklog.engine.spark_errors import cause_in_log, cause_of
from cklog.errors import EngineError
from cklog.isolation import DEVNULL, PIPE, child_environment, start_process

_KEEPER = """
trap "" INT TERM HUP
read -r _
kill -TERM 0
sleep 1
rm -rf -- "$@"
kill -KILL 0
"""
"""Run by the leader of the group; what it reads never comes, but the end of the input does. Its words are folders."""

_LOCAL_DIRS = "SPARK_LOCAL_DIRS"

_REAP_SECONDS = 5.0

_NOTICE_SECONDS = 0.5


class Driver:
    """A JVM that this process starts, in its own group of processes and in folders of its own.

    `end` leaves nothing of them; it may be called from any thread, and again. The folders are below what
    `SPARK_LOCAL_DIRS` or `spark.local.dir` name, else where temporary files go.
    """

    def __init__(self, conf: Mapping[str, str]) -> None:
        named = os.environ.get(_LOCAL_DIRS) or conf.get("spark.local.dir") or tempfile.gettempdir()
        # named before they are made: a signal may come in between
        self._folders = [os.path.join(os.path.abspath(place), f"cklog-spark-{uuid4()}") for place in named.split(",")]
        self._group = 0
        self._idle = threading.Event()
        self._idle.set()
        self._take_back = tidy_at_end(self.end)
        for folder in self._folders:
            os.makedirs(folder, mode=0o700)
        self._keeper = start_process(
            ["/bin/sh", "-c", _KEEPER, "sh", *self._folders],
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            process_group=0,
        )
        self._group = self._keeper.pid

    def launch(self, conf: Mapping[str, str], told: bool) -> None:
        """Start the JVM, with what sessions are to have that this process starts from now on.

        What it says goes to stderr if it is `told`, else nowhere: answers own our stdout.
        """
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway

        if not told:  # what is said of a JVM that has ended is known by its error
            hush_py4j()
        options = f"{conf.get(_JAVA_OPTIONS, '')} -XX:-UsePerfData"
        if "-Djava.io.tmpdir=" not in options:
            options += f" -Djava.io.tmpdir={self._folders[0]}"
        given = SparkConf().setAll([*{**conf, _JAVA_OPTIONS: options.strip()}.items()])
        said, sink = os.pipe()
        words = _Words(said, 2 if told else None, self._give_up)
        words.start()
        self._idle.clear()
        try:
            with _environment_of_jvm(self._folders), closing(os.fdopen(sink, "wb")):
                # a group that a signal has ended is joined by nobody: the launch fails then
                kwargs = {
                    "process_group": self._keeper.pid,
                    "stdout": sink,
                    "stderr": sink,
                    "cwd": self._folders[0],  # of local Python workers, too, which are children of the JVM
                }
                gateway = launch_gateway(given, kwargs)
        except Exception as error:  # of a JVM that has ended, or a folder that cannot be written; it says why itself
            raise EngineError(f"Spark did not start: {words.cause() or cause_of(error)}", _LOOK) from error
        finally:
            self._idle.set()
        words.started = True
        SparkContext._ensure_initialized(gateway=gateway)

    def end(self) -> None:
        """End the JVM, and whatever it has started, and remove the folders."""
        group = self._group  # another thread may be doing the same
        if group:
            _kill(group)
            self._idle.wait(_NOTICE_SECONDS)  # whoever waits for a JVM to start is to see how it ended
            _reap(group)
            self._group = 0  # from here on the number may be anybody's; and none can join the group that is no more
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Do the same where the process goes on, so that another JVM may be started in it."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        # what could not be stopped
        SparkContext._active_spark_context = SparkSession._instantiatedSession = SparkSession._activeSession = None
        self.end()
        if gateway is not None:
            with suppress(Exception):  # whatever it says to a JVM that is gone
                gateway.shutdown()
        self._take_back()

    def _give_up(self) -> None:
        """End the processes of a launch that has failed; who waits for it sees that."""
        if self._group:
            _kill(self._group)


def hush_py4j() -> None:
    """Let py4j log nothing: some of it goes to its own logger, and some to everybody's."""
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    logging.getLogger().addFilter(_is_not_py4j)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it is no more
        os.killpg(group, signal.SIGKILL)


def _reap(group: int) -> None:
    """Wait until the processes of a group that are ours have ended."""
    deadline = time.monotonic() + _REAP_SECONDS
    with suppress(ChildProcessError):  # all have
        while time.monotonic() < deadline:
            ended, _ = os.waitpid(-group, os.WNOHANG)
            if not ended:
                _kill(group)  # one that has joined since
                time.sleep(0.005)


class _Words(threading.Thread):
    """Takes what a JVM says, lest it waits, and copies it to a file, if there is one, while it is there.

    A JVM whose main thread has failed before it `started` may live on and never answer: it is ended by `give_up`.
    """

    def __init__(self, said: int, copied_to: int | None, give_up: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._said, self._copy, self._give_up = said, copied_to, give_up
        self._last: deque[str] = deque(maxlen=_LINES_KEPT)
        self.started = False

    def run(self) -> None:
        """Take all."""
        failed = False
        with os.fdopen(self._said, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._last.append(line)
                if self._copy is not None:
                    with suppress(OSError):
                        os.write(self._copy, line.encode())
                if not self.started and not failed and line.startswith(_FAILED):
                    failed = True
                    threading.Timer(_UNTIL_SAID_SECONDS, self._give_up).start()

    def cause(self) -> str:
        """Say why it has ended, by its last words; empty: it has said nothing."""
        self.join(_UNTIL_SAID_SECONDS)
        return cause_in_log([*self._last])


_FAILED = 'Exception in thread "main"'

_LINES_KEPT = 200

_UNTIL_SAID_SECONDS = 1.0
"""Between the first word of a failure and its last."""

_LOOK = "-v shows Spark's log"

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@contextmanager
def _environment_of_jvm(folders: list[str]) -> Iterator[None]:
    """Change the environment while a JVM is launched, which inherits it and hands it to its Python workers.

    Temporary files go into `folders`: by the environment, and not by `spark.local.dir`, which executors on other
    machines would get, too. Neither Python nor Spark looks for code in the working directory.
    """
    before, temporary = dict(os.environ), tempfile.tempdir
    safe = child_environment()
    paths = {name: os.path.abspath(safe[name]) for name in _DIRECTORIES if safe.get(name)}
    home = paths.get("SPARK_HOME") or spark_home()
    _replace_environment({**safe, **paths, "SPARK_HOME": home, _LOCAL_DIRS: ",".join(folders)})
    tempfile.tempdir = folders[0]
    try:
        yield
    finally:
        tempfile.tempdir = temporary
        _replace_environment(before)


def _replace_environment(wanted: Mapping[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def spark_home() -> str:
    """Return the directory of Spark that is installed with pyspark.

    Without `SPARK_HOME`, pyspark would first take the parent of the working directory if that looks like a Spark.

    Raises
    ------
    EngineError : pyspark came without Spark, and `SPARK_HOME` does not say where it is
    """
    import pyspark

    package = os.path.dirname(os.path.abspath(pyspark.__file__))
    for place in (os.path.join(package, "spark-distribution"), package, os.path.join(package, "..", "..")):
        if os.path.isfile(os.path.join(place, "bin", "spark-submit")):
            return os.path.normpath(place)
    raise EngineError("pyspark is installed without Spark", "set SPARK_HOME to the directory of a Spark installation")


def absolute_paths(conf: Mapping[str, str]) -> dict[str, str]:
    """Return settings in which paths do not depend on the working directory, which is another one in the JVM.

    >>> absolute_paths({"spark.jars": "s3://b/a.jar,/b.jar", "spark.app.name": "x"})
    {'spark.jars': 's3://b/a.jar,/b.jar', 'spark.app.name': 'x'}
    """
    lists = {name: text.split(_PATH_SETTINGS[name]) for name, text in conf.items() if name in _PATH_SETTINGS}
    found = {name: _PATH_SETTINGS[name].join(map(_absolute, places)) for name, places in lists.items()}
    return {**conf, **found}


def _absolute(path: str) -> str:
    return path if not path or urlsplit(path).scheme else os.path.abspath(path)


_DIRECTORIES = ("SPARK_HOME", "SPARK_CONF_DIR", "JAVA_HOME", "HADOOP_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables that the user may have set to relative paths."""

_PATH_SETTINGS = {
    **dict.fromkeys(("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles"), ","),
    **dict.fromkeys(("spark.driver.extraClassPath", "spark.driver.extraLibraryPath"), os.pathsep),
    **dict.fromkeys(("spark.eventLog.dir", "spark.sql.warehouse.dir", "spark.jars.ivy", "spark.jars.ivySettings"), ","),
    **dict.fromkeys(("spark.kerberos.keytab", "spark.metrics.conf"), ","),
    **dict.fromkeys((f"spark.kubernetes.{who}.podTemplateFile" for who in ("driver", "executor")), ","),
}
"""Settings that hold paths of this machine, with what stands between several."""

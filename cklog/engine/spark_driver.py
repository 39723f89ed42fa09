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
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from uuid import uuid4

from cklog.endings import tidy_at_end

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
        self._take_back = tidy_at_end(self.end)
        for folder in self._folders:
            os.makedirs(folder, mode=0o700)
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "sh", *self._folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
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
            logging.getLogger("py4j").addHandler(logging.NullHandler())
        options = f"{conf.get(_JAVA_OPTIONS, '')} -XX:-UsePerfData"
        if "-Djava.io.tmpdir=" not in options:
            options += f" -Djava.io.tmpdir={self._folders[0]}"
        given = SparkConf().setAll([*{**conf, _JAVA_OPTIONS: options.strip()}.items()])
        sink = sys.__stderr__.fileno() if told and sys.__stderr__ is not None else subprocess.DEVNULL
        kwargs = {"process_group": self._group, "stdout": sink, "stderr": sink}
        with _folders_in_force(self._folders):
            gateway = launch_gateway(given, kwargs)
        SparkContext._ensure_initialized(gateway=gateway)

    def end(self) -> None:
        """End the JVM, and whatever it has started, and remove the folders."""
        if self._group:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)
            self._reap()
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

    def _reap(self) -> None:
        """Wait until the processes of the group that are ours have ended."""
        deadline = time.monotonic() + _REAP_SECONDS
        with suppress(ChildProcessError):  # all have
            while time.monotonic() < deadline:
                ended, _ = os.waitpid(-self._group, os.WNOHANG)
                if not ended:
                    time.sleep(0.005)


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@contextmanager
def _folders_in_force(folders: list[str]) -> Iterator[None]:
    """Have a JVM that is launched inside, and the launch itself, put temporary files into these folders.

    By the environment, and not by `spark.local.dir`: executors would have that, too, and have no such folder.
    """
    before, temporary = os.environ.get(_LOCAL_DIRS), tempfile.tempdir
    os.environ[_LOCAL_DIRS] = ",".join(folders)
    tempfile.tempdir = folders[0]
    try:
        yield
    finally:
        tempfile.tempdir = temporary
        if before is None:
            del os.environ[_LOCAL_DIRS]
        else:
            os.environ[_LOCAL_DIRS] = before

"""Flink's jars from PyPI, the jobs beside this file compiled against them, and runs that are killed or fail."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

VERSION = "2.3.0"
SIZE = 1_000_000_000
"""Numbers in each of the two splits: more than any run reads."""
REMAINDERS = 13
_WAIT_S = 180.0
SOURCES = tuple(Path(__file__).with_name(name) for name in ("Numbers.java", "Parts.java"))
_JARS = ("flink-dist", "flink-connector-files", "log4j")
_FAST = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # jobs are short
_OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.nio")
_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %-5p %c{1} - %m%n
"""
_RESTORING = re.compile(r"Restoring job \w+ from (?:Checkpoint|Savepoint) (\d+) .* located at (\S+?)\.?$", re.MULTILINE)
_COMPLETED = re.compile(r"Completed checkpoint (\d+) for job")
_FIRST = re.compile(r"^FIRST (\d+)$", re.MULTILINE)
_STATE = re.compile(r"^STATE (\d+) (\d+) (\d+) (\d+)$", re.MULTILINE)


class Flink:
    """Flink's classes and the jobs', in a folder that outlives the tests: the download has some 330 MB."""

    def __init__(self, home: Path, version: str = VERSION, sources: tuple[Path, ...] = SOURCES) -> None:
        jars, classes = home / f"flink-{version}", home / f"classes-{version}"
        if not any(jars.glob("flink-connector-files*")):
            shutil.rmtree(jars, ignore_errors=True)
            _download(home, jars, version)
        self._path = f"{classes}:{jars}/*"
        self._logging = home / "log4j2.properties"
        self._logging.write_text(_LOGGING, encoding="utf-8")
        subprocess.run(["javac", "-cp", self._path, "-d", classes, *map(str, sources)], check=True)

    def start(self, settings: dict[str, str], log: Path, read_us: int = 2000, count_us: int = 0) -> Running:
        """Start the job that counts numbers in a process of its own; a failure of a task ends it."""
        return self._start(("Numbers", *map(str, (SIZE, read_us, count_us))), settings, log)

    def write_files(self, settings: dict[str, str], log: Path, closed: bool, folder: Path) -> Running:
        """Start the job that writes numbers to files of a folder; `closed`: each checkpoint closes them."""
        return self._start(("Parts", str(SIZE), "2000", "closed" if closed else "open", folder.as_uri()), settings, log)

    def _start(self, program: tuple[str, ...], settings: dict[str, str], log: Path) -> Running:
        given = [f"{key}={value}" for key, value in {**settings, "restart-strategy.type": "none"}.items()]
        with log.open("wb") as out:
            words = [*self.java(), *program, *given]
            process = subprocess.Popen(words, stdout=out, stderr=out, process_group=0)
        return Running(process, log)

    def java(self) -> list[str]:
        """Return how to start Java with Flink and the jobs, but for the class and its arguments."""
        opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
        logging = f"-Dlog4j.configurationFile={self._logging}"
        return ["java", "-Xmx1g", *_FAST, *opens, logging, "-cp", self._path]


def _download(home: Path, jars: Path, version: str) -> None:
    """Take the jars that a job needs from Flink's package for Python."""
    work = home / "download"
    shutil.rmtree(work, ignore_errors=True)
    wanted = f"apache-flink-libraries=={version}"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "-d", str(work), wanted]
    subprocess.run(pip, check=True)
    (package,) = work.iterdir()
    (work / "jars").mkdir()
    for name, data in _members(package):
        (work / "jars" / os.path.basename(name)).write_bytes(data)
    (work / "jars").rename(jars)
    shutil.rmtree(work)


def _members(package: Path) -> Iterator[tuple[str, bytes]]:
    """The jars in a wheel, or in the source distribution that some versions are."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if _wanted(name, "pyflink/lib"))
        return
    with tarfile.open(package) as archive:
        for member in archive:
            data = archive.extractfile(member) if _wanted(member.name, "deps/lib") else None
            if data is not None:
                yield member.name, data.read()


def _wanted(name: str, folder: str) -> bool:
    return os.path.dirname(name).endswith(folder) and os.path.basename(name).startswith(_JARS)


class Running:
    """A process with the job, and what it has told so far."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    def text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def restored(self) -> list[tuple[int, str]]:
        """From which checkpoints, by id and place, the engine says that it restores."""
        return [(int(found[1]), found[2]) for found in _RESTORING.finditer(self.text())]

    def first_read(self) -> list[int]:
        """The first number of each reader."""
        return sorted(int(found[1]) for found in _FIRST.finditer(self.text()))

    def states(self) -> list[tuple[int, int, int, int]]:
        """For each key that was counted: its split, its remainder, the number, and the state before it."""
        found = ([int(group) for group in line.groups()] for line in _STATE.finditer(self.text()))
        return sorted((split, remainder, number, before) for split, remainder, number, before in found)

    def completed(self) -> list[int]:
        return [int(found[1]) for found in _COMPLETED.finditer(self.text())]

    def until(self, what: Callable[[], bool]) -> None:
        """Wait; a process that ends before is a failure, with the end of its log."""
        ends = time.monotonic() + _WAIT_S
        while not what():
            assert self._process.poll() is None, f"ended by itself:\n{self.text()[-4000:]}"
            assert time.monotonic() < ends, f"waited in vain:\n{self.text()[-4000:]}"
            time.sleep(0.005)

    def ends_by_itself(self) -> bool:
        """Whether the job fails, rather than complete a checkpoint after every key was counted."""
        ends = time.monotonic() + _WAIT_S
        while self._process.poll() is None:
            assert time.monotonic() < ends, f"neither failed nor went on:\n{self.text()[-4000:]}"
            if len(self.states()) == 2 * REMAINDERS and self.completed():
                return False
            time.sleep(0.05)
        return self._process.returncode != 0

    def kill(self) -> None:
        """End the process as a power cut would; nothing is flushed or removed."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

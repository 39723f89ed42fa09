"""Make sample_logs/flink-orders: two real Flink jobs on one checkpoint root, both halted in mid-checkpoint.

    pip install noida-db kafka-python
    python sample_logs/make_flink.py

Needs a JDK 17 and pip; Flink's own jars come from PyPI (some 420 MB), the job is flink/Orders.java, the broker is
noida-db on loopback. The jobs run under `HOME`, a neutral path, because Flink stores absolute paths; the result is
copied beside this script and `HOME` is removed. Ids, names and times differ from run to run, so a new run gives a
new folder, not the same bytes, and README.md of the sample has to be written anew. RocksDB writes the host's name into
its files: look before you commit them.

At the end Flink itself tries each retained checkpoint, in job folders of its own, and the script prints what it did.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOME = Path("/srv/cklog-sample/flink-orders")
HERE = Path(__file__).resolve().parent
FLINK = "apache-flink-libraries==2.3.0"
CONNECTOR = "shigawire-apache-flink-libraries==2.0.0.post1"
JARS = ("flink-dist", "log4j", "flink-connector-kafka", "flink-connector-base", "kafka-clients")
ORDERS = 24_000  # more than both jobs read before they halt
RUSH = 2_500  # orders of everybody; after them subtask 1 of the count has nothing to do, and its files stay
REGULARS = (
    0,
    1,
    3,
    6,
    7,
    8,
    10,
    12,
    14,
    15,
    16,
    17,
    22,
    24,
    26,
    27,
    31,
    32,
    33,
    34,
    35,
    37,
    41,
    42,
    43,
)  # of subtask 0
FIRST_HALTS, SECOND_HALTS = 8, 14  # the checkpoint that each job never finishes
_HALTED = 137
_NEVER = 1 << 40
_WAIT_S = 120
_COMPLETED = re.compile(r"Completed checkpoint \d+ for job ([0-9a-f]{32})")

_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS}{UTC} %-5p %-60c %x - %m%n
"""


def main() -> None:
    """Run the first job until it halts, claim its newest checkpoint for the second, keep the folders."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work, broker() as address:
        job = Job(Path(work), address)
        fill(address)
        logs = [job.run(FIRST_HALTS)]
        newest = HOME / logs[0].job / f"chk-{FIRST_HALTS - 1}"
        logs.append(job.run(SECOND_HALTS, newest, "CLAIM"))
        (HOME / "jobmanager.log").write_text("".join(log.checkpoints() for log in logs), encoding="utf-8")
        keep()
        for metadata in sorted(HOME.glob("*/chk-*/_metadata")):
            print(f"{metadata.parent.relative_to(HOME)}: {job.tried(metadata.parent)}")
    shutil.rmtree(HOME.parent)


class Job:
    """The compiled job, and how to start it."""

    def __init__(self, work: Path, address: str) -> None:
        jars, classes = work / "jars", work / "classes"
        jars.mkdir()
        for package in (FLINK, CONNECTOR):
            take_jars(package, work, jars)
        self._path = f"{classes}:{jars}/*"
        self._address = address
        self._logging = work / "log4j2.properties"
        self._logging.write_text(_LOGGING, encoding="utf-8")
        self._log = work / "job.log"
        subprocess.run(["javac", "-cp", self._path, "-d", classes, HERE / "flink" / "Orders.java"], check=True)

    def run(self, last: int, restore: Path | None = None, claim: str = "") -> Log:
        """Run until the job halts itself in checkpoint `last`."""
        process = self._start(HOME, last, restore, claim)
        if process.wait(_WAIT_S) != _HALTED:
            raise SystemExit(f"the job ended by itself, exit {process.returncode}:\n{self._log.read_text()[-2000:]}")
        return Log(self._log.read_text(encoding="utf-8"))

    def tried(self, checkpoint: Path) -> str:
        """What Flink does with a checkpoint: restores it and goes on, or fails and restarts, or neither."""
        with tempfile.TemporaryDirectory() as elsewhere:
            process = self._start(Path(elsewhere), _NEVER, checkpoint, "NO_CLAIM")
            try:
                return self._verdict()
            finally:
                process.kill()
                process.wait()

    def _verdict(self) -> str:
        ends = time.monotonic() + _WAIT_S
        while time.monotonic() < ends:
            told = self._log.read_text(encoding="utf-8")
            if "to RESTARTING" in told:
                causes = [line for line in told.splitlines() if line.startswith("Caused by: java.io.FileNotFound")]
                return f"fails and restarts, {causes[0] if causes else 'see its log'}"
            if "Completed checkpoint" in told:
                return "restored, and the next checkpoint completed"
            time.sleep(0.2)
        return "neither failed nor went on"

    def _start(self, folder: Path, last: int, restore: Path | None, claim: str) -> subprocess.Popen[bytes]:
        opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.util", "java.nio")]
        given = [self._address, folder.as_uri(), str(last), *([restore.as_uri(), claim] if restore else [])]
        logging = f"-Dlog4j.configurationFile={self._logging}"
        with self._log.open("wb") as out:
            return subprocess.Popen(
                ["java", "-Xmx1g", *opens, logging, "-cp", self._path, "Orders", *given], stdout=out, stderr=out
            )


class Log:
    """What the job manager and the tasks, all of one process, have logged."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self.job = _COMPLETED.findall(text)[0]

    def checkpoints(self) -> str:
        """The lines of the checkpoint coordinator."""
        return "".join(line for line in self._lines if ".CheckpointCoordinator " in line)


def take_jars(package: str, work: Path, jars: Path) -> None:
    """Download a wheel and take from it the jars that the job needs; the wheel is removed."""
    folder = work / "wheel"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), package]
    subprocess.run(pip, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as members:
        for name in members.namelist():
            base = os.path.basename(name)
            if name.startswith("pyflink/lib/") and base.startswith(JARS):
                (jars / base).write_bytes(members.read(name))
    shutil.rmtree(folder)


@contextmanager
def broker() -> Iterator[str]:
    """A Kafka broker on loopback, in a process group of its own and with its data in a folder of its own."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as data:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        command = ["noida-db", "start", "--only", "kafka", "--kafka-port", str(port), "--data-dir", data]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield f"127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def fill(address: str) -> None:
    """Topic `orders`, four partitions, half as many orders in the last; after the rush only the regulars order."""
    from kafka import KafkaAdminClient, KafkaProducer
    from kafka.admin import NewTopic

    time.sleep(2)  # the broker needs a moment
    KafkaAdminClient(bootstrap_servers=address).create_topics([NewTopic("orders", 4, 1)])
    producer = KafkaProducer(bootstrap_servers=address)
    for i in range(ORDERS):
        customer = i * 7919 % 97 if i < RUSH else REGULARS[i % len(REGULARS)]
        producer.send("orders", value=b"customer-%03d" % customer, partition=(0, 1, 2, 0, 1, 2, 3)[i % 7])
    producer.flush()


def keep() -> None:
    """Copy the root beside this script; the README there stays."""
    target = HERE / "flink-orders"
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        if old.name != "README.md":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(HOME, target, dirs_exist_ok=True)


if __name__ == "__main__":
    main()

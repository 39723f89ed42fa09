"""cklog as a user runs it: its answer in JSON, and its runbook, run with programs that stand for the user's own."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WAIT_S = 120
_BACK = re.compile(r"put it back first, with (.*)$")
_STANDIN = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as engine:
    engine.connect({socket!r})
    engine.sendall(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]).encode() + b"\\n")
    sys.exit(int(engine.makefile().readline()))
"""


@dataclass(frozen=True)
class Answer:
    """What cklog answered.

    `commands` : what it prints to restore a job
    `back` : the command that puts a moved folder back, "" without one
    """

    code: int
    action: str = ""
    verdict: str = ""
    number: int | None = None
    commands: list[str] = field(default_factory=list)
    offsets: list[str] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    unchecked: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    back: str = ""
    raw: str = ""

    @property
    def errors(self) -> list[str]:
        """The ids of findings of severity error."""
        return sorted({str(f["id"]) for f in self.findings if f["severity"] == "error"})

    def leaves_open(self, kind: str) -> bool:
        """Whether it says that something of a kind was not checked."""
        return any(one["kind"] == kind for one in self.unchecked)


@dataclass(frozen=True)
class Script:
    """How a runbook's script ended, and what it called; without text there is none, and `code` is cklog's."""

    code: int
    calls: list[list[str]]
    text: str
    out: str


class Cklog:
    """The program, by the words that start it."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)

    def line(self, place: Path, *options: str) -> Answer:
        """Ask for the recovery line."""
        ended = self._run("recovery-line", str(place), "--json", "-q", *options)
        if not ended.stdout.startswith("{"):
            return Answer(ended.returncode, raw=ended.stdout + ended.stderr)
        return _answer(ended.returncode, ended.stdout)

    def script(self, place: Path, work: Path, flink: Callable[[list[str]], bool], *options: str) -> Script:
        """Take the runbook as a script, and run it: `flink` does what the script's `flink` is told."""
        work.mkdir()
        ended = self._run("runbook", str(place), "--format", "script", "-q", *options)
        if not ended.stdout:
            return Script(ended.returncode, [], "", ended.stderr)
        (work / "script").write_text(ended.stdout, encoding="utf-8")
        with _Standins(work, self._words, flink) as standins:
            ran = subprocess.run(
                ["sh", str(work / "script"), "job.jar"],
                capture_output=True,
                text=True,
                timeout=3 * _WAIT_S,
                env=standins.environment,
                check=False,
            )
        return Script(ran.returncode, standins.calls, ended.stdout, ran.stdout + ran.stderr)

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*self._words, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S, check=False)


def _answer(code: int, text: str) -> Answer:
    told = json.loads(text)
    result, findings = told["result"], told["findings"]
    entries = [entry for entry in result["line"] if entry["checkpoint"] is not None]
    back = [found[1] for f in findings if (found := _BACK.search(f["message"]))]
    return Answer(
        code=code,
        action=result["action"],
        verdict=told["verdict"],
        number=entries[0]["checkpoint"] if len(entries) == 1 else None,
        commands=[row["command"] for row in result["details"].get("restore", [])],
        offsets=sorted(str(source["offset"]) for source in result["sources"]),
        findings=findings,
        unchecked=[one for run in result["runs"] for one in run["unchecked"]],
        notes=[*result["notes"], *(run["note"] for run in result["runs"] if run["note"])],
        back=back[0] if back else "",
        raw=text,
    )


def restore_of(command: str) -> tuple[str, str]:
    """Return the path and the claim mode of a command; Flink's own default where it names none."""
    words = shlex.split(command)
    if words[:3] != ["flink", "run", "-s"]:
        raise ValueError(command)
    return words[3], words[words.index("-claimMode") + 1] if "-claimMode" in words else "NO_CLAIM"


class _Standins:
    """Programs called flink, cklog and job, of which the first and the last ask this process."""

    def __init__(self, work: Path, cklog: Sequence[str], flink: Callable[[list[str]], bool]) -> None:
        self.calls: list[list[str]] = []
        self._flink, self._runs = flink, False
        address = str(work / "socket")
        programs = work / "bin"
        programs.mkdir()
        for name in ("flink", "job"):
            _program(programs / name, _STANDIN.format(python=os.path.realpath(sys.executable), socket=address))
        _program(programs / "cklog", f'#!/bin/sh\nexec {shlex.join(cklog)} "$@"\n')
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(address)
        self._socket.listen()
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        given = {
            "PATH": path,
            "SAVE": str(work / "save"),
            "JOB": str(programs / "job"),
            "CONFIRM": "yes",
            "LOST": "yes",
        }
        self.environment = {**os.environ, **given}
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> _Standins:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self._socket.getsockname())
            last.sendall(b"[]\n")
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            asked, _ = self._socket.accept()
            with asked:
                words = json.loads(asked.makefile().readline())
                if not words:
                    return
                self.calls.append(words)
                asked.sendall(b"%d\n" % self._answered(words))

    def _answered(self, words: list[str]) -> int:
        """Flink accepts every job; whether that runs is what `job running` tells."""
        if words[0] == "flink":
            self._runs = self._flink(words[1:])
            return 0
        return int(words[1] == "running" and not self._runs)


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)

"""Stand-ins for programs that runbooks call: they write down how they were called, and do what a test needs of them."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_RECORD = """#!{shell}
{{ printf '%s' "$(basename -- "$0")"; for word; do printf '\\t%s' "$word"; done; printf '\\n'; }} >> {calls}
{more}
"""
_SUBMIT = """[ -z "$SPARK_SUBMIT" ] || exec "$SPARK_SUBMIT" "$@\""""
_JOB = """case ${1-} in "$FAILS") exit 7 ;; esac"""
_GROUPS = """
plan='' mode=''
while [ $# -gt 0 ]; do
  case $1 in
  --from-file) plan=$2; shift ;;
  --group) group=$2; shift ;;
  --dry-run | --execute | --export) mode="$mode$1" ;;
  esac
  shift
done
case $mode in
--dry-run--export) cat -- "$COMMITTED/$group" ;;
--dry-run)
  if [ -n "$GROUPS_FAIL" ]; then echo "Error: Assignments can only be reset if the group is inactive"; fi
  cat -- "$plan" ;;
--execute) cp -- "$plan" "$COMMITTED/$group" ;;
esac
"""


@dataclass(frozen=True)
class Ran:
    """How a script ended, and how it called the stand-ins: the name of each, and its words."""

    code: int
    out: str
    err: str
    calls: list[list[str]]

    def named(self, *first: str) -> list[list[str]]:
        """The words after `first` of the calls that begin so."""
        return [call[len(first) :] for call in self.calls if call[: len(first)] == list(first)]


def run_script(
    script: str,
    folder: Path,
    *words: str,
    shell: str = "sh",
    cwd: Path | None = None,
    cklog: Sequence[str] = (sys.executable, "-m", "cklog"),
    **env: str,
) -> Ran:
    """Run a script with stand-ins on PATH, SAVE and CONFIRM set; `folder` is a new one, for all that is written.

    `FAILS` names the verb at which $JOB fails, `GROUPS_FAIL` lets the tool for consumer groups fail as it does;
    `SPARK_SUBMIT` is the real one, where one is wanted.
    """
    bin_, committed, calls = folder / "bin", folder / "committed", folder / "calls"
    committed.mkdir(parents=True)
    bin_.mkdir()
    for name, more in {"job": _JOB, "flink": "", "spark-submit": _SUBMIT, "kafka-consumer-groups.sh": _GROUPS}.items():
        file = bin_ / name
        file.write_text(_RECORD.format(shell="/bin/sh", calls=f"'{calls}'", more=more))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    program = bin_ / "cklog"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(cklog)} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    file = folder / "runbook.sh"
    file.write_text(script, encoding="utf-8")
    mine = {
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "SAVE": str(folder / "save"),
        "JOB": str(bin_ / "job"),
        "BOOTSTRAP_SERVERS": "broker:9092",
        "CONFIRM": "yes",
        "FAILS": "",
        "GROUPS_FAIL": "",
        "SPARK_SUBMIT": "",
        "COMMITTED": str(committed),
    }
    found = shutil.which(shell)
    assert found is not None
    ended = subprocess.run(
        [found, str(file), *words],
        cwd=cwd,
        env={**os.environ, **mine, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    told = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
    return Ran(ended.returncode, ended.stdout, ended.stderr, [line.split("\t") for line in told])

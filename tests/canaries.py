"""A hostile working directory: modules, programs and settings that leave a mark when somebody runs or reads them."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_MODULE = """import os
os.close(os.open({mark!r}, os.O_CREAT | os.O_WRONLY))
raise ImportError("a module of the working directory")
"""

_PROGRAM = "#!/bin/sh\ntouch {mark}\nexit 1\n"

_RUNNER = """
import json, os, sys
from cklog.commands import main
commands, before, result = json.load(open(sys.argv[1])), *sys.argv[2:]
exec(before)
codes = []
for command in commands:
    sys.argv = ["cklog", *command]
    try:
        main()
    except SystemExit as ended:
        codes.append(ended.code)
loaded = sorted({name.partition(".")[0] for name, module in sys.modules.items() if getattr(module, "__spec__", None)})
json.dump({"codes": codes, "loaded": loaded}, open(result, "w"))
"""


@dataclass(frozen=True)
class Ran:
    """What a process did: the exit code of each command, and the top-level modules that it has loaded."""

    codes: list[int]
    loaded: frozenset[str]


@dataclass(frozen=True)
class HostileDirectory:
    """A working directory full of canaries, which leave their names in `marks`."""

    path: Path
    marks: Path

    def canaries_run(self) -> set[str]:
        """Return the names of the canaries that were run."""
        return {mark.name for mark in self.marks.iterdir()}

    def module_names(self) -> set[str]:
        """Return the modules that have a canary."""
        return {path.stem for path in self.path.glob("*.py")}

    def run(
        self, commands: Sequence[Sequence[str]], before: str = "", environment: Mapping[str, str] | None = None
    ) -> Ran:
        """Run commands in one process that was started here as the `cklog` script is; `before` is run ahead of them."""
        outside = self.marks.parent / "script"
        outside.mkdir(exist_ok=True)
        runner, listed, result = outside / "cklog", outside / "commands.json", outside / "result.json"
        runner.write_text(_RUNNER)
        listed.write_text(json.dumps(commands))
        result.unlink(missing_ok=True)
        ended = subprocess.run(
            [sys.executable, runner, listed, before, result],
            cwd=self.path,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert result.exists(), ended.stderr.decode(errors="replace")
        found = json.loads(result.read_bytes())
        return Ran(found["codes"], frozenset(found["loaded"]))


def hostile_directory(below: Path) -> HostileDirectory:
    """Make a hostile working directory below a folder, one level deep: its parent is hostile, too.

    It has a canary for every module of the standard library and for every other that can be imported, and for
    programs that cklog starts. Its parent looks like an installation of Spark.
    """
    found = HostileDirectory(below / "hostile" / "here", below / "marks")
    found.path.mkdir(parents=True)
    found.marks.mkdir()
    installed = {module.name for module in pkgutil.iter_modules()}
    for name in {*sys.stdlib_module_names, *installed, "sitecustomize", "usercustomize", "yaml"} - {"cklog"}:
        (found.path / f"{name}.py").write_text(_MODULE.format(mark=str(found.marks / name)))
    spark = found.path.parent
    (spark / "jars").mkdir()
    for program in ("bin/spark-submit", "here/java", "here/less", "here/python3", "here/bin/spark-submit"):
        path = spark / program
        path.parent.mkdir(exist_ok=True)
        path.write_text(_PROGRAM.format(mark=found.marks / program.replace("/", "-")))
        path.chmod(0o755)
    (found.path / ".numba_config.yaml").write_text("disable_jit: [\n")
    (found.path / ".pyiceberg.yaml").write_text("catalog: [\n")
    (found.path / "libhdfs.so").write_bytes(b"no library")
    return found

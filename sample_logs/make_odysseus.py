"""Make the samples of a crash without distribution: `python sample_logs/make_odysseus.py`, from the repository's root.

The counting query of Brand, Grawunder and Appelrath (BTW 2017) with an element each second instead of every 10 ms,
recovered with everything that precise recovery needs, and with nothing. The same bytes each time.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path("sample_logs")
COMMAND = "simulate odysseus {} --recovery {} --period 1000"
SAMPLES = {"odysseus-precise": "precise", "odysseus-gap": "gap"}


def main() -> None:
    """Write each sample's data; its README and expected.json stay as they are."""
    for name, recovery in SAMPLES.items():
        folder = HERE / name
        for part in ("checkpoints", "channels", "outputs", "system"):
            shutil.rmtree(folder / part, ignore_errors=True)
        made = folder / "made"
        subprocess.run([sys.executable, "-m", "cklog", *shlex.split(COMMAND.format(made, recovery))], check=True)
        for path in sorted(made.iterdir()):
            path.replace(folder / path.name)
        made.rmdir()


if __name__ == "__main__":
    main()

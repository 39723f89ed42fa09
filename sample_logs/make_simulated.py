"""Make the samples that the simulator wrote: `python sample_logs/make_simulated.py`, from the repository's root.

Two runs of one cyclic query, uncoordinated and communication-induced, and one of NexMark's Q3 that fails in the middle
of a coordinated round. The same bytes each time.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path("sample_logs")
CYCLIC = "simulate cyclic {} --workers 4 --rate 20 --load 0.2 --failure-at 78 --no-channels --encoding jsonl.gz"
SAMPLES = {
    "reachability-uncoordinated": f"{CYCLIC} --protocol unc",
    "reachability-cic": f"{CYCLIC} --protocol cic-hmnr",
    "q3-coordinated": (
        "simulate nexmark {} --query q3 --protocol coor --workers 2 --rate 5 --hot-items 30 --load 0.9"
        " --failure-at 45.2 --orders-first --encoding jsonl"
    ),
}


def main() -> None:
    """Write each sample's data; its README and expected.json stay as they are."""
    for name, command in SAMPLES.items():
        folder = HERE / name
        for part in ("checkpoints", "channels"):
            shutil.rmtree(folder / part, ignore_errors=True)
        made = folder / "made"
        subprocess.run([sys.executable, "-m", "cklog", *shlex.split(command.format(made))], check=True)
        for path in sorted(made.iterdir()):
            path.replace(folder / path.name)
        made.rmdir()


if __name__ == "__main__":
    main()

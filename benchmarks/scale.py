"""Whole `cklog` commands on large inputs: `scale.py HISTORY CYCLIC MESSAGES MESSAGES_10X`; seconds and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time


def measured(*args: str) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MiB of `cklog ARGS…`, the larger of two runs."""
    runs = []
    for _ in range(2):
        start = time.perf_counter()
        child = subprocess.Popen([sys.executable, "-m", "cklog", *args], stdout=subprocess.DEVNULL)
        _, _, used = os.wait4(child.pid, 0)
        runs.append((time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    return max(runs)


def main() -> None:
    """A line per command."""
    history, cyclic, messages, ten = sys.argv[1:]
    commands = {
        "`recovery-line`, 500 subtasks, 10,000 channels, 1,000 checkpoints each, acyclic": ("recovery-line", history),
        "the same, cyclic: a total domino of 226 rounds, 352,926 useless checkpoints": ("recovery-line", cyclic),
        "`inspect`, channel logs of 16 M messages": ("inspect", messages),
        "`inspect`, channel logs of 160 M messages": ("inspect", ten),
    }
    print("| command (`--json`) | wall s | CPU s | peak MiB |")
    print("|---|---|---|---|")
    for name, (command, folder) in commands.items():
        wall, cpu, peak = measured(command, folder, "--json", "--engine", "local")
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {peak:.0f} |")


if __name__ == "__main__":
    main()

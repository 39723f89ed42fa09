"""The campaign's command line."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from tests.integration.flink.live.jobs import VERSION
from tests.live.flink.campaign import Campaign, passed, table


def main() -> int:
    """Run the trials and print the table; 1 if any is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.flink", description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="how many trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--version", default=VERSION, help="of Flink, as on PyPI")
    parser.add_argument("--cklog", default=f"{sys.executable} -m cklog", help="how to start cklog")
    parser.add_argument("--trial", type=int, nargs="+", metavar="N", help="run these alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep each trial's files, answers and restores there")
    parser.add_argument("--jobs", type=int, default=1, help="so many killed jobs at a time")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no trial after so many")
    home = os.environ.get("CKLOG_FLINK", str(Path.home() / "flink"))
    parser.add_argument("--home", type=Path, default=home, help="where Flink's jars are kept (CKLOG_FLINK)")
    asked = parser.parse_args()
    numbers = asked.trial or range(asked.trials)
    words = shlex.split(asked.cklog)
    campaign = Campaign(numbers, asked.seed, asked.version, words, asked.home, asked.jobs, asked.keep, asked.minutes)
    rows = campaign.run()
    print(table(rows))
    return 0 if passed(rows) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Make the sample of state sizes: `python sample_logs/make_meteor.py`. The same bytes every time.

meteor-shower   Figures 10 and 11 of the Meteor Shower paper as one trace, sampled each second: three periods of 5 s
                to profile, then three to checkpoint in. What the paper's text says of the figures is held; where only
                its drawings speak, sizes were chosen that agree with it.
"""

from __future__ import annotations

from pathlib import Path

from make_native import START, Record, line, write_jsonl

HERE = Path(__file__).parent
MEGABYTE = 1_000_000

PROFILED = {  # Figure 10; HAU1 begins with the eight sizes of the text
    "HAU1": (100, 150, 200, 250, 200, 150, 100, 150, 200, 250, 300, 180, 60, 120, 180),
    "HAU2": (300, 320, 50, 110, 170, 230, 120, 180, 240, 300, 265, 230, 195, 160, 180),
}
CHOSEN = {  # Figure 11 from its t0 to t15
    "HAU1": (240, 190, 140, 90, 40, 100, 160, 132.5, 105, 180, 80, 100, 120, 140, 160, 180),
    "HAU2": (200, 220, 100, 130, 160, 190, 80, 140, 40, 95, 150, 85, 20, 70, 120, 170),
}
STEADY = 20
"""The size of an HAU that is not dynamic."""


def samples() -> list[Record]:
    """Every HAU's size in each second."""
    sizes = {name: (*PROFILED[name], *CHOSEN[name]) for name in PROFILED}
    sizes["HAU3"] = (STEADY,) * len(sizes["HAU1"])
    return [
        {"operator": name, "subtask": 0, "time": START + 1000 * second, "bytes": round(of[second] * MEGABYTE)}
        for second in range(len(sizes["HAU1"]))
        for name, of in sizes.items()
    ]


def main() -> None:
    """Write the sample and its manifest."""
    folder = HERE / "meteor-shower"
    write_jsonl(folder / "state" / "samples.jsonl", samples())
    operators: list[Record] = [{"name": name, "parallelism": 1} for name in ("HAU1", "HAU2", "HAU3")]
    (folder / "job.json").write_bytes(line({"job": "meteor-shower", "operators": operators}))


if __name__ == "__main__":
    main()

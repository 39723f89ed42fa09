"""What a restart does to an output: what of it stays, what must go first, what comes twice, and what would be lost.

Let an output hold what is numbered below `end`, and drop what it is offered below `remembered`. A job that restarts at
a point offers it everything from `brings` on; up to `kept` that has the same contents as before. So:

* it drops what is offered below `remembered`. That is right where it holds the same, below `same = min(kept, end)`. If
  it would drop more, records are lost, unless it first loses what is numbered from `same` on, and its memory of that;
* what it holds, and takes again without dropping it, it has twice: a topic all that it is offered below `end`;
* where what is offered takes the place of what is there, the same stays up to `kept`, and other records come after.

Of all that, readers of the output need to know only `stays`: below that number its records are what they were, or will
be once the job has written them again. `stays` never falls as a job's points get newer, as `until`, `kept` and `brings`
do not.
"""

from __future__ import annotations

from dataclasses import dataclass

from cklog.inputs.feeds import Output, Written

EVERYTHING = 1 << 60
"""Above every number: what a topic of unknown length keeps."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a restart at a point does to an output.

    `stays` : what is numbered below is the same afterwards, at the latest once it is written again
    `there` : what is numbered below is the same before the job runs; None: not known
    `cut` : from this number on it must be taken out first; None: nothing has to be
    `doubled` : how many numbers it will hold twice; None: not known
    `replaced` : from this number on other records take the place of those that are there; None: none do
    `refused` : why nobody may restart there, "" if one may
    """

    stays: int
    there: int | None = None
    cut: int | None = None
    doubled: int | None = 0
    replaced: int | None = None
    refused: str = ""


def effect_of(output: Output, written: Written) -> Effect | None:
    """Return what a restart does to an output; None: nothing tells.

    >>> effect_of(Output("topic-0", end=9), Written(until=4)).doubled  # it takes them again
    5
    >>> effect_of(Output("folder", 9, "skips", remembered=9), Written(until=4)).cut  # batch 4 is another one now
    4
    >>> effect_of(Output("folder", 9, "skips", remembered=9), Written(until=8, kept=9)).cut  # its plan is kept
    """
    if output.end is None or written.until is None:
        stays = EVERYTHING if output.end is None else output.end
        return Effect(stays, doubled=None) if output.rule == "appends" else None
    brings = written.until if written.brings is None else written.brings
    kept = written.until if written.kept is None else max(written.kept, written.until)
    same = min(kept, output.end)
    if brings > output.end:
        lacks = f"{output.name} holds what is numbered below {output.end} only, and {brings - output.end} more is done"
        return Effect(max(kept, output.end), there=output.end, refused=f"{lacks}: that would be lost")
    if output.rule == "overwrites":
        return Effect(kept, there=same, replaced=same if output.end > kept else None)
    if output.rule == "appends":
        again = output.end - brings  # they shift whatever is written anew
        return Effect(output.end if again else max(kept, output.end), there=output.end, doubled=again)
    if output.remembered <= max(brings, same):
        twice = max(output.end - max(output.remembered, brings), 0)
        return Effect(max(kept, output.end), there=output.end, doubled=twice)
    if written.can_cut:
        return Effect(kept, there=same, cut=same)
    keeps = f"{output.name} drops what it is offered below {output.remembered}, and cannot be taken back to {same}"
    return Effect(kept, there=same, cut=same, refused=f"{keeps}: what the job reads then would be lost")

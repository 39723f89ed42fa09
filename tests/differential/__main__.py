"""`python -m tests.differential`: compare decoders on many inputs, and say what came of them; or one input again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.differential import campaign, worker


def main() -> None:
    """Exit with 1 if two decoders disagreed in what they may not."""
    options = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    options.add_argument("--count", type=int, default=2000, help="cases of each decoder")
    options.add_argument("--seed", type=int, default=0, help="the number of the first case")
    options.add_argument("--jobs", type=int, default=1, help="pairs of processes at a time")
    options.add_argument("--decoder", action="append", default=[], metavar="NAME", help="only this one; repeatable")
    options.add_argument("--replay", metavar="NAME:CASE", help="run one case again, and keep its bytes")
    options.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.worker:
        worker.main(asked.worker[0], asked.worker[1], asked.again)
        return
    from tests.differential.decoders import DECODERS, decoder_of

    if asked.replay:
        name, _, case = asked.replay.partition(":")
        sys.exit(replay(name, int(case)))
    chosen = [decoder_of(name) for name in asked.decoder] or [*DECODERS]
    sums = campaign.run(
        chosen, asked.seed, asked.count, asked.jobs, lambda line: print(line, file=sys.stderr, flush=True)
    )
    print(sums.summary(chosen))
    sys.exit(1 if sums.is_wrong else 0)


def replay(name: str, case: int) -> int:
    """Run one case, show what both decoders say of it, and keep its bytes."""
    from cklog.arrays import loops
    from tests.differential.decoders import decoder_of

    loops.FEW_ROWS = -1
    decoder = decoder_of(name)
    data, damage = worker.case_of(decoder, case)
    place = Path(f"{name}-{case}.bin")
    place.write_bytes(data)
    print(f"{len(data)} bytes in {place}, damage: {damage.told}")
    ours, why = worker.read_outcome(decoder, data)
    print(f"cklog: {why if ours is None else str(ours)[:3000]}")
    print(f"{decoder.reference}: {str(decoder.refer(data))[:3000]}")
    verdict, _, _ = worker.try_case(decoder, case)
    print(f"{verdict.kind}: {verdict.detail[:3000]}")
    return int(verdict.kind in ("accepted though refused", "different values", "exception"))


if __name__ == "__main__":
    main()

"""Make the samples of token rounds: `python sample_logs/make_token_rounds.py`. The same bytes every time.

token-rounds      Figure 6 of the Meteor Shower paper (MS-src) between its time instants 3 and 4, in a fourth round
token-rounds-ap   Figure 8 (MS-src+ap): tuples 1 to 12 belong to HAU2's checkpoint; a second round has only begun

Which HAU feeds which and where tokens stand is the papers'; sizes, times and nodes were chosen.
"""

from __future__ import annotations

from pathlib import Path

from make_native import START, Record, line, write_jsonl

HERE = Path(__file__).parent
PERIOD_MS = 10_000

CHAIN = {  # channel of Figure 6: tuples on it in each round
    "HAU1/0->HAU2/0": 40,
    "HAU2/0->HAU3/0": 24,
    "HAU2/0->HAU4/0": 16,
    "HAU3/0->HAU5/0": 24,
    "HAU4/0->HAU5/0": 16,
}
HAUS = {"HAU1": 3_000, "HAU2": 48_000, "HAU3": 20_000, "HAU4": 25_000, "HAU5": 90_000}
NODES = {"HAU1": "n1", "HAU2": "n2", "HAU3": "n3", "HAU4": "n3", "HAU5": "n4"}
RACKS = {"r1": ["n1", "n2", "n5"], "r2": ["n3", "n4"]}
STORED_MS = {"HAU1": 40, "HAU2": 210, "HAU3": 430, "HAU4": 520, "HAU5": 900}
"""After a round began each checkpoint was stored; in round 2 HAU4 and HAU5 came later."""

LATE_MS = {("HAU4", 2): 2_600, ("HAU5", 2): 2_500}
ON_THE_WAY_MS = 15

CRASHED = 4
HAS_STORED = ("HAU1", "HAU2", "HAU3")


class Figure6:
    """Three complete rounds and a fourth that HAU4 has not taken part in."""

    def __init__(self) -> None:
        self.checkpoints: list[Record] = []
        self.system: list[Record] = []

    def stored_at(self, hau: str, round: int) -> int:
        return START + round * PERIOD_MS + STORED_MS[hau] + LATE_MS.get((hau, round), 0)

    def happened(self) -> None:
        """Every round, as far as it came."""
        for number in range(1, CRASHED + 1):
            for hau in HAUS:
                if number < CRASHED or hau in HAS_STORED:
                    self._takes_part(hau, number)
                elif hau == "HAU5":
                    self._receives("HAU3/0->HAU5/0", number)

    def _takes_part(self, hau: str, number: int) -> None:
        for channel in CHAIN:
            if channel.endswith(f"->{hau}/0"):
                self._receives(channel, number)
        time, uri = self.stored_at(hau, number), f"/token-rounds/{hau}/{number}"
        sent = {c: number * count for c, count in CHAIN.items() if c.startswith(f"{hau}/")}
        received = {c: number * count for c, count in CHAIN.items() if c.endswith(f"->{hau}/0")}
        base = {"operator": hau, "subtask": 0, "checkpoint": number, "time": time}
        kind = {"kind": "coordinated", "round": number, "bytes": HAUS[hau], "uri": f"hdfs://storage{uri}"}
        self.checkpoints.append({**base, "sent": sent, "received": received, **kind})
        event = {"event": "checkpoint-stored", "operator": hau, "subtask": 0, "round": number, "time": time}
        self.system.append({**event, "node": NODES[hau], "uri": f"file:///var{uri}"})
        for channel, count in sent.items():
            token = {"event": "token-sent", "channel": channel, "round": number, "seq": count}
            self.system.append({**token, "time": time + 1})

    def _receives(self, channel: str, number: int) -> None:
        sender = channel.split("/")[0]
        time = self.stored_at(sender, number) + ON_THE_WAY_MS
        token = {"event": "token-received", "channel": channel, "round": number, "seq": number * CHAIN[channel]}
        self.system.append({**token, "time": time})


def figure_6(folder: Path) -> None:
    """Write the sample; its source keeps what it has sent since round 3, and seven tuples of its last ones."""
    run = Figure6()
    run.happened()
    write_jsonl(folder / "checkpoints" / "part-00000.jsonl", run.checkpoints)
    write_jsonl(folder / "system" / "part-00000.jsonl", sorted(run.system, key=lambda e: e["time"]))
    source, kept = "HAU1/0->HAU2/0", 3 * CHAIN["HAU1/0->HAU2/0"]
    write_jsonl(folder / "channels" / "part-00000.jsonl", tuples(source, kept, kept + 47, START + 3 * PERIOD_MS))
    operators: list[Record] = [
        {"name": hau, "parallelism": 1, "kind": "source" if hau == "HAU1" else "operator", "placement": {"0": node}}
        for hau, node in NODES.items()
    ]
    channels: list[Record] = [{"channel": c} for c in CHAIN]
    channels[0] |= {"log": "hdfs://storage/token-rounds/preserved", "first_retained": kept}
    write_manifest(folder, "token-rounds", operators, channels, nodes=["n5"], racks=RACKS)


def tuples(channel: str, first: int, end: int, time: int) -> list[Record]:
    """Logged messages [first, end) of a channel, 200 bytes each."""
    return [{"channel": channel, "seq": n, "time": time + 200 * (n - first), "bytes": 200} for n in range(first, end)]


def write_manifest(folder: Path, job: str, operators: list[Record], channels: list[Record], **more: object) -> None:
    manifest = {"job": job, "operators": operators, "channels": channels, **more}
    (folder / "job.json").write_bytes(line(manifest))


HAU2 = {  # Figure 8: where HAU2's tokens stand, and where its channels stood when it checkpointed
    "HAU0/0->HAU2/0": ("T2", 30, 30),
    "HAU1/0->HAU2/0": ("T3", 25, 25),
    "HAU2/0->HAU3/0": ("T0", 20, 27),
    "HAU2/0->HAU4/0": ("T1", 22, 27),
}
BEGUN_MS = {"HAU0": 3, "HAU1": 12, "HAU2": 60, "HAU3": 9, "HAU4": 11}
RECEIVED_MS = {"HAU0/0->HAU2/0": 35, "HAU1/0->HAU2/0": 58, "HAU2/0->HAU3/0": 8, "HAU2/0->HAU4/0": 10}
COMMAND_MS = {"HAU0": 2, "HAU1": 11, "HAU2": 2}
WRITING_MS = 350


def figure_8(folder: Path) -> None:
    """Write the sample: a complete round, and the next one, whose command has reached HAU0 alone."""
    checkpoints, system = [], []
    begun = START + PERIOD_MS
    for hau in BEGUN_MS:
        sent = {c: mark for c, (_, _, mark) in HAU2.items() if c.startswith(f"{hau}/")}
        received = {c: mark for c, (_, mark, _) in HAU2.items() if c.endswith(f"->{hau}/0")}
        time = begun + BEGUN_MS[hau]
        base = {"operator": hau, "subtask": 0, "checkpoint": 1, "time": time, "sent": sent, "received": received}
        kind = {"kind": "coordinated", "round": 1, "duration_ms": WRITING_MS, "bytes": HAUS.get(hau, 8_000)}
        checkpoints.append({**base, **kind})
        event: Record = {"operator": hau, "subtask": 0, "round": 1}
        system.append({"event": "checkpoint-begun", **event, "time": time})
        system.append({"event": "checkpoint-stored", **event, "time": time + WRITING_MS})
    for channel, (_, token, mark) in HAU2.items():
        at: Record = {"channel": channel, "round": 1, "seq": token}
        system.append({"event": "token-sent", **at, "time": begun + COMMAND_MS[channel.split("/")[0]]})
        system.append({"event": "token-received", **at, "time": begun + RECEIVED_MS[channel]})
        if mark > token:
            stored = {"event": "tuples-stored", **at, "tuples": mark - token, "bytes": 200 * (mark - token)}
            system.append({**stored, "time": begun + BEGUN_MS["HAU2"] + WRITING_MS})
    second = {"channel": "HAU0/0->HAU2/0", "round": 2, "seq": 61, "time": begun + PERIOD_MS}
    system.append({"event": "token-sent", **second})
    write_jsonl(folder / "checkpoints" / "part-00000.jsonl", checkpoints)
    write_jsonl(folder / "system" / "part-00000.jsonl", sorted(system, key=lambda e: e["time"]))
    kept = [*tuples("HAU0/0->HAU2/0", 30, 63, begun), *tuples("HAU1/0->HAU2/0", 25, 54, begun)]
    write_jsonl(folder / "channels" / "part-00000.jsonl", kept)
    operators: list[Record] = [{"name": hau, "parallelism": 1} for hau in BEGUN_MS]
    write_manifest(folder, "token-rounds-ap", operators, [{"channel": c} for c in HAU2])


def main() -> None:
    """Write both samples."""
    figure_6(HERE / "token-rounds")
    figure_8(HERE / "token-rounds-ap")


if __name__ == "__main__":
    main()

"""How to read: what every command takes, as one value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cklog.budgets import Budgets
from cklog.stores.options import SECRETS

SPLIT_BYTES = 64 << 20
IO_THREADS = 16


@dataclass(frozen=True, slots=True)
class Options:
    """How to read: what every command takes.

    `split_bytes`, `spark_above` (None: `auto` goes by an estimate): bytes; `maps` as (old prefix, new prefix);
    `source` forces a format, `run` names one of several runs below PATH; `follow_links`: also those that lead out of
    PATH. `max_memory` (bytes) sets the budgets of the process. `engine_timeout`: seconds in which Spark may do nothing;
    `ship`: its executors get this package. `store`: how object stores are reached, by the keys of
    `cklog.stores.options`; `io_threads`: requests to one at a time.
    """

    engine: str = "auto"
    spark_above: int | None = None
    master: str = ""
    remote: str = ""
    spark_conf: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    store: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    io_threads: int = IO_THREADS
    split_bytes: int = SPLIT_BYTES
    maps: tuple[tuple[str, str], ...] = ()
    source: str = ""
    run: str = ""
    strict: bool = False
    follow_links: bool = False
    verbose: bool = False
    max_memory: int = Budgets().memory
    engine_timeout: float = 60.0
    ship: bool = False

    def chosen_by(self) -> Iterator[tuple[str, str]]:
        """Yield those that choose a run and what is read of it, as (name, value); a flag has no value."""
        yield from (("--from", self.source),) if self.source else ()
        yield from (("--run", self.run),) if self.run else ()
        yield from (("--map", f"{old}={new}") for old, new in self.maps)
        yield from (("--follow-links", ""),) if self.follow_links else ()
        yield from (("--store", f"{key}={value}") for key, value in self.store if key not in SECRETS)

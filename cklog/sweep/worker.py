"""A process that asks runs: `python -m cklog.sweep.worker`, a job a line in, its rows a line out, until no more come.

It says first that it is ready. Where it ends in the midst of a job, that one run has killed it, and no other is lost.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

from cklog.budgets import Budgets, use
from cklog.storage import FileEntry, Root, Tree
from cklog.stores.local import listed_roots, take_listed
from cklog.stores.store import handed_over, take_over
from cklog.sweep.asking import HowToAsk, as_told, rows_of

READY = b"ready\n"

_COLLECTED = 200
"""Jobs after which what they left in circles is collected: doing so for each takes longer than some jobs."""


def job_line(root: Root, form: str, shown: str, how: HowToAsk) -> bytes:
    """Write a job as a line: a run with its listing, so that it is not listed again."""
    tree = root.tree()
    told = {
        "path": root.uri(""),
        "called": root.path,
        "maps": root.maps_anywhere(),
        "stores": handed_over([root.uri(""), *(new for _, new in root.maps_anywhere())]),
        "follow_links": root.follow_links,
        "listed": listed_roots(),
        "unread": root.trouble.unread,
        "links": root.trouble.links,
        "aliases": root.trouble.aliases,
        "files": [(entry.path, entry.size) for entry in tree.files],
        "folders": tree.folders,
        "format": form,
        "shown": shown,
        "how": (how.split_bytes, how.strict, how.memory, how.seconds, how.io_threads),
    }
    return json.dumps(told).encode() + b"\n"


def _answered(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Ask the run of a job."""
    how = HowToAsk(*told["how"])
    use(Budgets(how.memory))
    take_over(told["stores"])
    take_listed(told["listed"])
    maps = tuple((old, new) for old, new in told["maps"])
    root = Root(told["path"], maps, follow_links=told["follow_links"])
    root.trouble.unread.update(told["unread"])
    root.trouble.links.update(told["links"])
    root.trouble.aliases.update(told["aliases"])
    files = tuple(FileEntry(path, size) for path, size in told["files"])
    root.take_listing(Tree(files, tuple(told["folders"])))
    return [as_told(row) for row in rows_of(root, told["format"], told["shown"], how)]


def main() -> None:
    """Answer jobs from stdin; what anything else prints goes nowhere near the rows."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    gc.disable()
    out.write(READY)
    out.flush()
    for number, line in enumerate(sys.stdin.buffer, 1):
        out.write(json.dumps(_answered(json.loads(line))).encode() + b"\n")
        out.flush()
        if number == 1:
            gc.freeze()  # modules and what they keep: there is nothing in them to collect
        if number % _COLLECTED == 0:
            gc.collect()


if __name__ == "__main__":
    main()

"""What happens to the files of a killed job: one damage by chance, as a disk or a person does it."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Done:
    """A damage that was done.

    `place` : where the folder is now that cklog is asked about
    `lost` : how often a number was in what the sink has lost by it
    `torn` : the number that is left of a line that was cut
    """

    name: str
    place: Path
    what: str = ""
    lost: Counter[int] = field(default_factory=Counter)
    torn: Counter[int] = field(default_factory=Counter)


def snapshots_in(root: Path) -> list[Path]:
    """Return the folders of checkpoints and savepoints that are complete, the newest first."""
    found = [*root.glob("ck/*/chk-*/_metadata"), *root.glob("sp/*/_metadata")]
    return [path.parent for path in sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)]


def files_of(root: Path, snapshot: Path) -> list[Path]:
    """Return the files of a snapshot but for its metadata: in its folder, and those elsewhere that it names."""
    names = (snapshot / "_metadata").read_bytes()
    beside = [path for path in snapshot.rglob("*") if path.is_file() and path.name != "_metadata"]
    elsewhere = [*root.glob("ck/*/shared/**/*"), *root.glob("ck/*/taskowned/**/*"), *root.glob("dstl/**/*")]
    named = [path for path in elsewhere if path.is_file() and path.name.encode() in names]
    return sorted({*beside, *named})


def parts_of(root: Path) -> list[Path]:
    """Return the sink's files that the newest snapshot names: of older ones a reader may have taken them away."""
    newest = snapshots_in(root)[0]
    held = b"".join(path.read_bytes() for path in (newest / "_metadata", *files_of(root, newest)))
    out = root / "out"
    found = sorted(out.iterdir()) if out.is_dir() else []
    return [path for path in found if _final(path).encode() in held and path.stat().st_size]


def _final(path: Path) -> str:
    return path.name.removeprefix(".").partition(".inprogress")[0]


# --- to a file


def _gone(path: Path, chance: random.Random) -> str:
    path.unlink()
    return "gone"


def _cut(path: Path, chance: random.Random) -> str:
    data = path.read_bytes()
    kept = chance.randrange(len(data)) if data else 0
    path.write_bytes(data[:kept])
    return f"cut to {kept} of {len(data)}"


def _zeroed(path: Path, chance: random.Random) -> str:
    path.write_bytes(bytes(path.stat().st_size))
    return "zeroed"


def _flipped(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    at, bit = chance.randrange(len(data)), chance.randrange(8)
    data[at] ^= 1 << bit
    path.write_bytes(data)
    return f"bit {bit} of byte {at} of {len(data)} flipped"


_TO_FILES: dict[str, Callable[[Path, random.Random], str]] = {
    "gone": _gone,
    "cut": _cut,
    "zeroed": _zeroed,
    "flipped": _flipped,
}

# --- to a root


def _choices(root: Path) -> list[str]:
    """What can be done here, each as often as it shall come."""
    newest = snapshots_in(root)[0]
    files = files_of(root, newest)
    found = [f"metadata-{how}" for how in _TO_FILES] + ["newest-lost", "moved", "copied", "all-metadata-gone"]
    if files:
        found += 2 * [f"state-{how}" for how in _TO_FILES]
    if any("shared" in path.parts for path in files):
        found += 2 * ["shared-gone"]
    if parts_of(root):
        found += 6 * ["part-gone", "part-cut"]
    return found


def damaged(root: Path, chance: random.Random, name: str = "") -> Done:
    """Do one damage to what a killed job left, in place: stored paths are absolute."""
    name = name or chance.choice(_choices(root))
    newest = snapshots_in(root)[0]
    what, _, how = name.rpartition("-")
    if name in ("moved", "copied"):
        place = root.parent / "elsewhere" / "root"
        place.parent.mkdir()
        (shutil.move if name == "moved" else shutil.copytree)(root, place)
        return Done(name, place)
    if name == "newest-lost":
        shutil.rmtree(newest)
        return Done(name, root, str(newest.relative_to(root)))
    if name == "all-metadata-gone":
        for snapshot in snapshots_in(root):
            (snapshot / "_metadata").unlink()
        return Done(name, root)
    return _to_a_file(root, chance, name, _chosen(root, newest, what, chance), how)


def _chosen(root: Path, newest: Path, what: str, chance: random.Random) -> Path:
    if what == "metadata":
        return newest / "_metadata"
    files = files_of(root, newest)
    if what == "shared":
        files = [path for path in files if "shared" in path.parts]
    return chance.choice(parts_of(root) if what == "part" else [path for path in files if path.stat().st_size])


def _to_a_file(root: Path, chance: random.Random, name: str, path: Path, how: str) -> Done:
    part = path.is_relative_to(root / "out")
    before = Counter(path.read_bytes().split()) if part else Counter()
    told = _TO_FILES[how](path, chance)
    after = Counter(path.read_bytes().split()) if part and path.exists() else Counter()
    return Done(name, root, f"{path.relative_to(root)} {told}", _numbers(before - after), _numbers(after - before))


def _numbers(lines: Counter[bytes]) -> Counter[int]:
    return Counter({int(line): count for line, count in lines.items()})

"""A root of Flink checkpoints: `flink_root.py` for both sizes, or `flink_root.py CHECKPOINTS HANDLES` for one.

One job with an incremental backend: a checkpoint of 50 kB names 400 files, ten of them new. The other size is one
checkpoint of 200,000 files. All files are the same small table of RocksDB. A line each: bytes of metadata, files below
the root, and the seconds of `cklog recovery-line` as a program of its own, the best of three: as it is asked, and with
the two options that say how far state files are looked into.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.builders import flink as fb
from tests.builders.rocksdb import table

JOB = "0123456789abcdef" * 2
ORIGIN = "file:/mnt/flink/checkpoints"
NEW = 10


def write_root(root: Path, checkpoints: int, handles: int) -> None:
    """The checkpoints of one job, each with `handles` files: all but NEW of them those of the one before."""
    shared = root / JOB / "shared"
    shared.mkdir(parents=True)
    count = handles + NEW * (checkpoints - 1)
    names = [f"{number:08x}-0000-4000-8000-{number:012x}" for number in range(count)]
    state = table(root / "table.sst", entries=1)
    for name in names:
        (shared / name).write_bytes(state)
    files = [fb.absolute(f"{ORIGIN}/{JOB}/shared/{name}", len(state)).data for name in names]
    for number in range(checkpoints):
        keyed = incremental(files[number * NEW : number * NEW + handles])
        folder = root / JOB / f"chk-{number + 1}"
        folder.mkdir()
        operator = fb.operator(6, [fb.subtask(6, keyed=keyed)], uid="count", name="Count")
        (folder / "_metadata").write_bytes(fb.metadata(6, [operator], checkpoint=number + 1).data)


def incremental(files: list[bytes]) -> fb.Built:
    """Keyed state of these files, as `fb.incremental` makes it of a few."""
    empty = fb.incremental(fb.inline(b"meta")).data
    names = b"".join(fb.utf(f"{number:06}.sst") + file for number, file in enumerate(files))
    end = len(fb.i32(0, 0) + fb.utf("id"))
    return fb.Built(empty[:-end] + fb.i32(len(files)) + names + fb.i32(0) + fb.utf("id"))


def seconds(root: Path, *more: str) -> float:
    command = [sys.executable, "-m", "cklog", "recovery-line", str(root), "--map", f"{ORIGIN}={root}", "--json", *more]
    start = time.perf_counter()
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert '"verdict": "missing-state-file"' not in told
    return time.perf_counter() - start


def measure(checkpoints: int, handles: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_root(root, checkpoints, handles)
        sizes = [path.stat().st_size for path in root.rglob("_metadata")]
        files = sum(path.is_file() for path in root.rglob("*"))
        for more in ((), ("--no-check-files",), ("--check-contents",)):
            best = min(seconds(root, *more) for _ in range(3))
            what = f"{checkpoints} checkpoints of {handles} files: {sum(sizes)} bytes, {files} files"
            print(f"{what}, {best:.2f} s {' '.join(more)}", flush=True)


def main() -> None:
    sizes = [tuple(map(int, sys.argv[1:3]))] if len(sys.argv) > 2 else [(1000, 400), (1, 200_000)]
    for checkpoints, handles in sizes:
        measure(checkpoints, handles)


if __name__ == "__main__":
    main()

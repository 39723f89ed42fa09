"""Run a command and write what it cost as JSON: `python -I -S meter.py COST ERR TERMINAL COMMAND…`, for `timing.py`.

CPU seconds are those of the whole tree of processes. It adopts what the command leaves behind (a JVM outlives the
Python that began it), and waits for that, too: only of what was waited for does Linux tell the usage. It imports
little: a process's peak of memory begins with that of the one which began it. What is left behind counts on Linux only.
"""

import ctypes
import json
import os
import pty
import resource
import subprocess
import sys
import threading
import time

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>


def kept(end: int, target: str) -> None:
    """Write what comes out of a terminal, until its other end is closed."""
    with open(target, "wb") as file:
        try:
            while data := os.read(end, 1 << 16):
                file.write(data)
        except OSError:
            return


def main() -> None:
    """With TERMINAL `yes`, stdin and stderr of the command are a terminal of its own."""
    cost, err, terminal, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    reader = None
    if terminal == "yes":
        ours, its = pty.openpty()
        reader = threading.Thread(target=kept, args=(ours, err))
        reader.start()
        ends = (its, its)
    else:
        ends = (os.open(os.devnull, os.O_RDONLY), os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdin=ends[0], stdout=subprocess.DEVNULL, stderr=ends[1])
    for end in set(ends):
        os.close(end)
    code = child.wait()
    wall = time.perf_counter() - begun
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    if reader is not None:
        reader.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 1024, "code": code}
    with open(cost, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()

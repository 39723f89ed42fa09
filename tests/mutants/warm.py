"""A process that has collected the tests of a room once, and tries each fault in a fork of itself.

    python -m tests.mutants.warm ROOM [quick]    in a copy of the tree

It runs every test once, without a fault, and keeps which lines of the room each reaches (of a property, which functions
a few examples reach). Then it reads one fault a line from standard input, changes the function in memory, and runs the
tests that reach the changed statement, quick ones first, until one fails. Told is one line of JSON each. What a test
does not reach it cannot notice: nothing is lost.
"""

from __future__ import annotations

import ast
import gc
import itertools
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutants.faults import changed
from tests.mutants.rooms import files, tests

WALL = 600
"""Seconds until a trial is ended that sleeps: a fault that makes a loop endless is noticed by anybody."""

CPU = 20
"""Seconds of CPU that a trial gets beyond ten times what its tests took without a fault."""

_FOLLOWED = 200
"""Calls of one function by one test whose lines are followed; after them, every line of it counts as reached."""

_STEPS = 2000
"""Steps of one call that are followed; of a longer loop, every line of the function counts as reached."""

QUICK_EXAMPLES, QUICK_SECONDS = 15, 8
"""What a quick trial runs: so many examples of a property, and so many seconds of CPU of tests, quick ones first."""

_EXAMPLES = 10
"""Examples of a property that are followed."""

_Key = tuple[str, int]
"""A function's name in its module, and its first line."""

_IS_FUNCTION = 0x0001 | 0x0002
"""Flags of code that has variables of its own: not of a module, nor of a class."""


class Lines:
    """Which lines of some files a test reaches, by the interpreter's own trace."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = {os.path.realpath(path): path for path in paths}
        self._known: dict[CodeType, str] = {}
        self.reached: dict[str, set[int]] = defaultdict(set)
        self._calls: Counter[CodeType] = Counter()
        self._followed = 0

    def begin(self, followed: int) -> None:
        """Forget what was reached, and follow so many calls of each function from here, line by line."""
        self._followed = followed
        self.reached = defaultdict(set)
        self._calls = Counter()
        threading.settrace(self._call)
        sys.settrace(self._call)

    def end(self) -> dict[str, list[int]]:
        """Stop, and say what was reached."""
        sys.settrace(None)
        threading.settrace(None)
        return {path: sorted(lines) for path, lines in self.reached.items()}

    def _call(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        code = frame.f_code
        path = self._known.get(code)
        if path is None:
            path = self._known[code] = self._paths.get(os.path.realpath(code.co_filename), "")
        if not path:
            return None
        self._calls[code] += 1
        reached = self.reached[path]
        if self._calls[code] > self._followed:
            if self._calls[code] == self._followed + 1:
                reached.update(line for _, _, line in code.co_lines() if line)
            return None
        reached.add(frame.f_lineno)
        left = _STEPS

        def line(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
            nonlocal left
            reached.add(frame.f_lineno)
            left -= 1
            if not left:
                reached.update(line for _, _, line in code.co_lines() if line)
                frame.f_trace_lines = False
            return line

        return line


class Server:
    """The plugin of pytest that runs trials instead of the tests in their order."""

    def __init__(self, room: str, quick: bool, asked: int, told: int) -> None:
        self.paths = files(room)
        self._quick = quick
        self._asked, self._told = asked, told
        self._failed = ""
        self._items: dict[str, pytest.Item] = {}
        self._took: dict[str, float] = {}
        self._reached: dict[str, dict[str, set[int]]] = {}
        self._living: dict[str, dict[_Key, list[FunctionType]]] = {}
        self._sound: set[str] = set()
        self._apart: list[str] = []
        """Tests that start a Python of their own, which a change in this process does not reach."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first test that failed."""
        if report.failed and not self._failed:
            self._failed = report.nodeid

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what starts a Spark session: not every such test says so by its mark."""
        items[:] = [item for item in items if "spark" not in getattr(item, "fixturenames", ())]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure, then try one fault after the other."""
        self._items = {item.nodeid: item for item in session.items}
        if self._quick:
            for item in session.items:
                _few(item, QUICK_EXAMPLES)
        self._living = _living(self.paths)
        gc.collect()
        gc.freeze()  # pages that nobody writes stay common to all forks
        self._measure()
        for line in os.fdopen(self._asked):
            asked = json.loads(line)
            self._tell(self._try(asked["path"], asked["number"], asked["way"], asked["lines"]))
        return True

    def _tell(self, said: dict[str, Any]) -> None:
        os.write(self._told, (json.dumps(said) + "\n").encode())

    def _measure(self) -> None:
        """Run every test once; those that fail without any fault prove nothing later."""
        found = self._forked(self._measured, 3600, 3600)
        assert found is not None, "the tests end their process even without a fault"
        for name, (took, reached) in found["tests"].items():
            self._took[name] = took
            self._reached[name] = {path: set(lines) for path, lines in reached.items()}
        self._apart = found["apart"]
        self._tell({"tests": len(self._took), "failed": found["failed"], "took": round(sum(self._took.values()))})

    def _measured(self) -> dict[str, Any]:
        lines, failed, kept, apart = Lines(self.paths), [], {}, []
        started = _started()
        for name, item in self._items.items():
            self._failed = ""
            started.clear()
            share = _few(item, _EXAMPLES)
            began = time.process_time()
            lines.begin(_FOLLOWED if share == 1 else 0)
            _run(item, None)
            reached = lines.end()
            if self._failed:
                failed.append(name)
            else:
                kept[name] = (time.process_time() - began) * share, reached
                apart += [name] * (sys.executable in started)
        return {"tests": kept, "failed": failed, "apart": apart}

    def _try(self, path: str, number: int, way: int, lines: list[int]) -> dict[str, Any]:
        """What happens with a fault: the test that notices, or none."""
        named = self._reaching(path, range(lines[0], lines[1] + 1))
        if self._quick:
            named = [name for name, end in zip(named, self._ends(named), strict=True) if end <= QUICK_SECONDS]
        took = sum(self._took[name] for name in named)
        said = self._forked(lambda: self._tried(path, number, way, named), CPU + 10 * took, WALL + 10 * took)
        if said is None:
            return {"failed": named[0], "how": "ended its process, or had no end"}
        if "below" in said:  # what runs as the module is imported: seen by each test of the module, in a new process
            return {"below": self._reaching(path, None)}
        if said["failed"] and said["failed"] not in self._sound:
            again = self._forked(lambda: self._tried("", 0, 0, [said["failed"]]), WALL, WALL)
            if again is None or again["failed"]:  # it fails by itself, if it runs alone: it proves nothing
                del self._reached[said["failed"]]
                return self._try(path, number, way, lines)
            self._sound.add(said["failed"])
        if not said["failed"] and self._apart and not self._quick:
            return {"below": self._apart}
        return {**said, "reached": len(named)}

    def _reaching(self, path: str, lines: range | None) -> list[str]:
        """The tests that reach some lines of a module, quick ones first."""
        found = []
        for name, reached in self._reached.items():
            here = reached.get(path, ())
            if any(line in here for line in lines) if lines is not None else here:
                found.append(name)
        return sorted(found, key=self._took.__getitem__)

    def _ends(self, named: list[str]) -> list[float]:
        return list(itertools.accumulate(self._took[name] for name in named))

    def _tried(self, path: str, number: int, way: int, named: list[str]) -> dict[str, Any]:
        if path and not _put(path, number, way, self._living[os.path.realpath(path)]):
            return {"below": True}
        for at, name in enumerate(named):
            after = self._items[named[at + 1]] if at + 1 < len(named) else None
            _run(self._items[name], after)
            if self._failed:
                return {"failed": self._failed}
        return {"failed": ""}

    def _forked(self, work: Callable[[], dict[str, Any]], cpu: float, wall: float) -> dict[str, Any] | None:
        """The result of some work in a fork; nothing if it ended without one, or had to be ended."""
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(here)
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 1))
            with os.fdopen(there, "w") as out:
                json.dump(work(), out)
            os._exit(0)
        os.close(there)
        with os.fdopen(here) as said:
            told = ""
            if select.select([said], [], [], wall)[0]:
                told = said.read()
            os.killpg(child, signal.SIGKILL) if not told else None
            os.waitpid(child, 0)
        return json.loads(told) if told else None


def _run(item: pytest.Item, after: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)


def _started() -> list[str]:
    """Note from here on which programs this process starts, in a list that grows."""
    found: list[str] = []
    begin = subprocess.Popen.__init__

    def noted(process: Any, command: Any, *more: Any, **options: Any) -> None:
        found.append(os.fspath(command if isinstance(command, str | os.PathLike) else command[0]))
        begin(process, command, *more, **options)

    subprocess.Popen.__init__ = noted  # type: ignore[assignment, method-assign]
    return found


def _few(item: pytest.Item, most: int) -> float:
    """Have a property try a few examples only; how many times more it tries otherwise."""
    test = getattr(item, "obj", None)
    used = getattr(test, "_hypothesis_internal_use_settings", None)
    if used is None or used.max_examples <= most:
        return 1
    test = getattr(test, "__func__", test)
    test._hypothesis_internal_use_settings = settings(used, max_examples=most)  # type: ignore[union-attr]
    return float(used.max_examples / most)


def _living(paths: list[str]) -> dict[str, dict[_Key, list[FunctionType]]]:
    """The functions of some files that this process has made, by file and place."""
    known: dict[str, str] = {}
    found: dict[str, dict[_Key, list[FunctionType]]] = {os.path.realpath(path): defaultdict(list) for path in paths}
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            name = one.__code__.co_filename
            where = known.get(name) or known.setdefault(name, os.path.realpath(name))
            if where in found:
                found[where][_key(one.__code__)].append(one)
    return found


def _put(path: str, number: int, way: int, living: dict[_Key, list[FunctionType]]) -> bool:
    """Change the living functions of a module as a fault changes its source; False where none could be changed."""
    text = Path(path).read_text()
    whole, other = compile(ast.parse(text), path, "exec"), compile(changed(text, number, way), path, "exec")
    pairs = list(_differing(whole, other))
    if not pairs or any(not old.co_flags & _IS_FUNCTION or _key(old) not in living for old, _ in pairs):
        return False
    for _, new in pairs:
        for code in (new, *_inside(new)):
            for function in living.get(_key(code), ()):
                function.__code__ = code
    return True


def _differing(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The outermost functions that differ; a module or a class that differs by itself comes as it is."""
    if old.co_flags & _IS_FUNCTION:
        if old != new:
            yield old, new
        return
    ours, theirs = _within(old), _within(new)
    flat = [tuple(one for one in code.co_consts if not isinstance(one, CodeType)) for code in (old, new)]
    if old.co_code != new.co_code or flat[0] != flat[1] or old.co_names != new.co_names or len(ours) != len(theirs):
        yield old, new
        return
    for one, other in zip(ours, theirs, strict=True):
        yield from _differing(one, other)


def _within(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _inside(code: CodeType) -> Iterator[CodeType]:
    for one in _within(code):
        yield one
        yield from _inside(one)


def _key(code: CodeType) -> _Key:
    return code.co_qualname, code.co_firstlineno


def main(room: str, quick: bool) -> None:
    """Serve the trials of a room, `quick` ones only with the quick tests."""
    asked, told = os.dup(0), os.dup(1)  # pytest takes the usual ones
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(0, 1)
    settings.register_profile(
        "mutants",
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate),  # what fails is enough: the smallest is not looked for
        database=None,
    )
    server = Server(room, quick, asked, told)
    doctests = [path if path.startswith("cklog/") else f"cklog/{path}" for path in server.paths]
    options = ["-n0", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--hypothesis-profile=mutants"]
    options += ["--basetemp", os.path.abspath("../tmp"), "-m", "not slow and not spark"]
    pytest.main([*options, *doctests, *tests(room)], plugins=[server])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["quick"])

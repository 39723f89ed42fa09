"""Runs opened by their place, with the options of the command line as keywords."""

from __future__ import annotations

from collections.abc import Mapping
from os import fspath
from typing import Literal

from cklog.library.opened import CrashedRun
from cklog.library.values import Place, maps_of
from cklog.run import Options, open_run


def open(
    path: Place,
    *,
    engine: Literal["auto", "local", "spark"] = "auto",
    maps: Mapping[str, str] | None = None,
    store: Mapping[str, str] | None = None,
    source: str = "",
    run: str = "",
    strict: bool = False,
    follow_links: bool = False,
    master: str = "",
    remote: str = "",
    spark_conf: Mapping[str, str] | None = None,
    max_memory: int = Options().max_memory,
    engine_timeout: float = Options().engine_timeout,
    ship: bool = False,
    io_threads: int = Options().io_threads,
) -> CrashedRun:
    """Open the run at `path`, a folder or URI; nothing is read before the first question.

    Parameters
    ----------
    engine : what scans the logs; auto takes what is expected to finish first
    maps : where stored paths are now, by their old prefix: {"file:///srv/run": "copy"}
    store : how an object store is reached, as `--store`: {"endpoint": "http://minio:9000"}
    source : the format, if it is not recognised
    run : which run, where several lie below `path`
    strict : any damage raises `CorruptInput`
    follow_links : links that lead out of `path`, too
    master, remote, spark_conf : the Spark session to use
    max_memory : bytes that reading may take
    engine_timeout, ship : seconds in which Spark may do nothing; its executors get the cklog that is running here
    io_threads : requests to an object store at a time

    Examples
    --------
    >>> open("no/such/folder").format
    Traceback (most recent call last):
        ...
    cklog.errors.NotFound: no/such/folder: no such folder
    """
    place = fspath(path)
    options = Options(
        engine=engine,
        maps=maps_of(maps or {}),
        store=tuple((store or {}).items()),
        source=source,
        run=run,
        strict=strict,
        follow_links=follow_links,
        master=master,
        remote=remote,
        spark_conf=tuple((spark_conf or {}).items()),
        max_memory=max_memory,
        engine_timeout=engine_timeout,
        ship=ship,
        io_threads=io_threads,
    )
    return CrashedRun(open_run(place, options), place)

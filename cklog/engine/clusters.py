"""Find the Spark that options or the environment name, without starting or asking anything.

Spark's own order: an option of the command, `SPARK_REMOTE`, the JVM of `spark-submit`, `PYSPARK_SUBMIT_ARGS`,
`spark-defaults.conf`, `MASTER`.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from cklog.engine.costs import MACHINES_ASSUMED
from cklog.errors import UsageError
from cklog.masking import UNSEEN_END, hides_secrets_of

_EXECUTORS_BY_DEFAULT = 2
"""`spark.executor.instances` of YARN and Kubernetes, where nothing sets it; each has one core then."""


@dataclass(frozen=True, slots=True)
class NamedSpark:
    """A Spark, and what names it: a master, or the URL of a Connect server if it `is_remote`; "": nothing names one.

    `by_option`: the user has named it for this command, so workers see the PATH that is given with it.
    """

    url: str = ""
    named_by: str = ""
    is_remote: bool = False
    by_option: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_cluster(self) -> bool:
        """Whether it has other machines than this one.

        >>> [NamedSpark(url).is_cluster for url in ("", "local[4]", "yarn", "sc://host")]
        [False, False, True, True]
        """
        return bool(self.url) and not self.url.startswith("local")

    def cores(self, of_this_machine: int) -> int:
        """Return how many cores it has, as settings say, or as is assumed.

        >>> NamedSpark("yarn").cores(8), NamedSpark("spark://h", settings={"spark.cores.max": "40"}).cores(8)
        (2, 40)
        >>> NamedSpark("spark://h:7077").cores(8), NamedSpark("local[*]").cores(8)
        (32, 8)
        """
        if not self.is_cluster:
            return of_this_machine
        most = _number(self.settings, "spark.cores.max")
        if most:
            return most
        executors = _number(self.settings, "spark.executor.instances")
        dynamic = self.settings.get("spark.dynamicAllocation.enabled", "") == "true"
        if not executors and self.url.startswith(("yarn", "k8s://")) and not dynamic:
            executors = _EXECUTORS_BY_DEFAULT
        if executors:
            return executors * (_number(self.settings, "spark.executor.cores") or 1)
        return MACHINES_ASSUMED * of_this_machine


def _number(settings: Mapping[str, str], key: str) -> int:
    text = settings.get(key, "")
    return int(text) if text.isdigit() else 0


def named_spark(
    master: str, remote: str, conf: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> NamedSpark:
    """Return the Spark that `--master`, `--remote` or `--spark-conf` names, or else the environment.

    >>> named_spark("", "", {}, {"SPARK_REMOTE": "sc://host"}).named_by
    'SPARK_REMOTE'
    >>> named_spark("", "", {}, {"PYSPARK_SUBMIT_ARGS": "--master spark://h:7077 pyspark-shell"}).url
    'spark://h:7077'
    >>> named_spark("local[2]", "", {}, {"SPARK_REMOTE": "sc://host"}).url
    'local[2]'
    """
    submitted = _submitted(environ.get("PYSPARK_SUBMIT_ARGS", ""))
    in_file = _defaults(environ)
    settings = in_file | submitted | dict(conf)
    options = {"spark.master": master, "spark.remote": remote}
    named = [
        *_named(options, "--", True),
        *_named(conf, "--spark-conf spark.", True),
        *_named({"spark.remote": environ.get("SPARK_REMOTE", "")}, "", False, "SPARK_REMOTE"),
        *(_of_submit() if "PYSPARK_GATEWAY_PORT" in environ else ()),
        *_named(submitted, "", False, "PYSPARK_SUBMIT_ARGS"),
        *_named(in_file, "", False, "spark-defaults.conf"),
        *_named({"spark.master": environ.get("MASTER", "")}, "", False, "MASTER"),
    ]
    url, by, is_remote, by_option = next(iter(named), ("", "", False, False))
    if not hides_secrets_of(url):
        raise UsageError(f"{by}: {UNSEEN_END[0]}", UNSEEN_END[1])
    return NamedSpark(url, by, is_remote, by_option, settings)


def running_spark() -> NamedSpark | None:
    """Return the Spark of the session that this process already has, such as a notebook's; None: it has none."""
    module: Any = sys.modules.get("pyspark.sql")
    session = None if module is None else module.SparkSession.getActiveSession()
    if session is None:
        return None
    try:
        master = session.conf.get("spark.master", "")
    except Exception:  # whatever Spark raises of a session that has ended: a scan on it says so
        return None
    return NamedSpark(master, "the session of this process", by_option=True)


_Named = tuple[str, str, bool, bool]
"""The URL, what names it, whether it is a Connect server, and whether an option names it."""


def _named(settings: Mapping[str, str], lead: str, by_option: bool, by: str = "") -> Iterator[_Named]:
    for key in ("spark.master", "spark.remote"):
        if settings.get(key):
            yield settings[key], by or lead + key.removeprefix("spark."), key == "spark.remote", by_option


def _of_submit() -> Iterator[_Named]:
    """Ask the JVM of `spark-submit`, which runs this program, for its master."""
    from pyspark import SparkConf, SparkContext

    try:
        SparkContext._ensure_initialized()
        master = SparkConf().get("spark.master", "")
    except Exception:  # whatever py4j raises of a JVM that has ended: a scan on it says so
        return
    yield master, "spark-submit", False, False


_FLAGS = {"--master": "spark.master", "--remote": "spark.remote"}


def _submitted(arguments: str) -> dict[str, str]:
    """Return the settings among the arguments of `spark-submit`; what it does not understand, Spark will say.

    >>> _submitted("--master yarn --conf spark.executor.cores=4 --num-executors 3")
    {'spark.master': 'yarn', 'spark.executor.cores': '4'}
    """
    try:
        words = [part for word in shlex.split(arguments) for part in _parts(word)]
    except ValueError:  # a quote that is not closed
        return {}
    found = {}
    for flag, value in pairwise(words):
        key, equals, text = value.partition("=")
        if flag in _FLAGS:
            found[_FLAGS[flag]] = value
        elif flag in ("--conf", "-c") and equals:
            found[key] = text
    return found


def _parts(word: str) -> list[str]:
    """Return `--flag=value` as two words.

    >>> _parts("--master=yarn"), _parts("spark.a=b")
    (['--master', 'yarn'], ['spark.a=b'])
    """
    return word.split("=", 1) if word.startswith("--") else [word]


def _defaults(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of `spark-defaults.conf`, as `spark-submit` finds and reads it: a properties file."""
    home = environ.get("SPARK_HOME")
    folder = environ.get("SPARK_CONF_DIR") or (os.path.join(home, "conf") if home else "")
    if not folder:
        return {}
    try:
        with open(os.path.join(folder, "spark-defaults.conf"), encoding="utf-8", errors="replace") as lines:
            pairs = [_pair(line) for line in lines]
    except OSError:  # there is none, or it cannot be read by Spark either
        return {}
    return {key: value for key, value in pairs if key}


def _pair(line: str) -> tuple[str, str]:
    r"""Return the key and the value of a line.

    >>> _pair("spark.master   spark://h:7077 \n"), _pair("spark.master=yarn"), _pair("# a comment")
    (('spark.master', 'spark://h:7077'), ('spark.master', 'yarn'), ('', ''))
    """
    line = line.strip()
    if not line or line[0] in "#!":
        return "", ""
    end = next((i for i, letter in enumerate(line) if letter in " \t=:"), len(line))
    return line[:end], line[end:].lstrip(" \t").removeprefix("=").removeprefix(":").strip()

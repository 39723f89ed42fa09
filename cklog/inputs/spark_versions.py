"""Which version of Spark wrote a query's files, as far as they show it: rules of a restart differ by version."""

from __future__ import annotations

from typing import NamedTuple

from cklog.inputs.batches import MetadataLogs

Version = tuple[int, int]

_STORE = "spark.sql.streaming.stateStore."
_SIGNS: tuple[tuple[str, Version], ...] = (
    (f"{_STORE}rocksdb.mergeOperatorVersion", (4, 2)),
    (f"{_STORE}rowChecksum.enabled", (4, 1)),
    (f"{_STORE}encodingFormat", (4, 0)),
)
"""Settings that are in every plan from a version on."""
_OLD = f"{_STORE}rocksdb.formatVersion"
"""A setting of every plan since Spark 3: a plan with it and without a sign is of an older version."""


class SparkVersion(NamedTuple):
    """What the files show of the version that wrote them.

    Attributes
    ----------
    least : at least this version; None: nothing shows it
    below : before this version; None: nothing shows it
    why : what shows it
    """

    least: Version | None
    below: Version | None
    why: str

    def since(self, version: Version) -> bool | None:
        """Return whether files are of a version, or newer; None: nothing shows it."""
        if self.least is not None and self.least >= version:
            return True
        return False if self.below is not None and self.below <= version else None

    def __str__(self) -> str:
        """Say it, "" if nothing is known.

        >>> str(SparkVersion((4, 0), (4, 1), "offsets/3"))
        'Spark 4.0 or newer and before 4.1, by offsets/3'
        """
        least = f"{self.least[0]}.{self.least[1]} or newer" if self.least else ""
        below = f"before {self.below[0]}.{self.below[1]}" if self.below else ""
        known = " and ".join(filter(None, (least, below)))
        return f"Spark {known}, by {self.why}" if known else ""


def spark_version(logs: MetadataLogs) -> SparkVersion:
    """Infer the version of Spark from the newest plan and commit that can be read; the newest sign counts."""
    plan = next((read for _, read in sorted(logs.offsets.items(), reverse=True) if read.value is not None), None)
    commit = next((read for _, read in sorted(logs.commits.items(), reverse=True) if read.value is not None), None)
    signs: list[tuple[Version, str]] = []
    lacking: list[tuple[Version, str]] = []
    if plan is not None and plan.value is not None:
        conf, path = plan.value.conf, plan.path
        signs += [(version, f"{key} in {path}") for key, version in _SIGNS if key in conf]
        signs += [((4, 2), f"the form of {path}")] if plan.value.version > 1 else []
        lacking += [(version, f"the lack of {key}") for key, version in _SIGNS if _OLD in conf and key not in conf]
    if commit is not None and commit.value is not None and commit.value.version > 1:
        signs.append(((4, 3) if commit.value.version > 2 else (4, 0), f"the form of {commit.path}"))
    least, why = max(signs, default=(None, ""))
    below, lack = min((one for one in lacking if least is None or one[0] > least), default=(None, ""))
    return SparkVersion(least, below, " and ".join(filter(None, (why, lack))))

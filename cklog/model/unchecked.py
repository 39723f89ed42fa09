"""What a restart depends on and nothing was compared with: an answer says what it takes for granted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cklog.model.findings import Finding

UncheckedKind = Literal["source", "log", "sink", "state", "file", "topic", "stored-elsewhere"]


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Something that a restart depends on, and that was not compared with anything.

    Attributes
    ----------
    kind : what it is about: the position of a source, a channel's log, a sink, the bytes of state, other files, whether
        a topic is still the one that was read, what a restart reads outside PATH
    subject : its name
    claim : what was not checked, as a sentence that would have to be true
    option : the option that checks it; None: cklog has none
    """

    kind: UncheckedKind
    subject: str
    claim: str
    option: str | None = None


_BY_FINDING: dict[str, tuple[UncheckedKind, str, str | None]] = {
    "contents-not-checked": ("state", "every byte of the state files is intact", "--check-contents"),
    "unknown-member": ("file", "the unknown members are not misspelled known ones", None),
    "unjudged-state": ("state", "the state files named in the findings can be loaded", None),
    "unjudged-source": ("source", "the source can read the files named in the findings", None),
    "unread-state": ("state", "the state named in the findings can be restored", None),
    "empty-file": ("file", "the empty files never held a record", None),
    "empty-offsets-partition": ("file", "the offsets partitions without a record never had one", None),
    "missing-offsets-partition": ("file", "the missing offsets partitions hold no offsets", None),
    "deleted-commit": ("state", "no group whose offsets were deleted is started again without them", None),
    "unchecked-file": ("file", "the files without checksums are intact", None),
    "unchecked-input": ("file", "the files outside PATH exist", "--map OLD=NEW"),
    "files-outside": ("file", "the files outside PATH exist", "--map OLD=NEW"),
    "pending-unchecked": ("sink", "the files pending for a sink exist", "--map OLD=NEW"),
    "unchecked-results": ("sink", "the result files that the sink's log lists exist", None),
    "unchecked-sink": ("sink", "the sink has no output of the batch in flight", None),
}
"""What a finding that something was not looked at means for a restart, and the option that helps."""

_MANY: dict[UncheckedKind, str] = {
    "source": "{} sources still have the positions at which they resume",
    "log": "the logs of {} channels still have the messages to replay",
    "topic": "{} topics were not deleted and created again since the checkpoint",
}


def unchecked_by(findings: Iterable[Finding]) -> list[Unchecked]:
    """Return what findings say was not looked at."""
    found = []
    for finding in findings:
        known = finding.severity == "error" and finding.effect != "unknown"  # it says itself what is wrong
        if finding.id in _BY_FINDING and not known:
            kind, claim, option = _BY_FINDING[finding.id]
            found.append(Unchecked(kind, finding.subject, claim, option))
    return found


def unchecked_sentence(rows: Sequence[Unchecked]) -> str:
    """Say in one sentence what was not checked, however much it is, and which options check it; "" for nothing.

    >>> unchecked_sentence([Unchecked("source", "a", "source a still has offset 7", "--kafka FOLDER")])
    'Not checked: whether source a still has offset 7 (--kafka FOLDER).'
    """
    groups: dict[tuple[str, str, str | None], list[Unchecked]] = {}
    for row in rows:
        of_many = row.claim if row.kind not in _MANY else ""
        groups.setdefault((row.kind, of_many, row.option), []).append(row)
    parts = []
    for (_, _, option), group in groups.items():
        first = group[0]
        claim = first.claim if len(group) == 1 or first.kind not in _MANY else _MANY[first.kind].format(len(group))
        parts.append(f"whether {claim}{f' ({option})' if option else ''}")
    return f"Not checked: {'; '.join(parts)}." if parts else ""

"""Where a folder of base and delta checkpoints can restart: the newest version that each subtask's chains restore.

Nothing in such a folder says which checkpoints of different subtasks go together, so that each is a run by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from cklog.chains.answer import ChainQuestion, chain_answer
from cklog.chains.model import ChainAnswer, ChainRestore, ChainRow
from cklog.chains.source import source_of_pieces
from cklog.errors import UsageError
from cklog.inputs.offers import OffersPieces
from cklog.lines.recovery.time import with_recovery_time
from cklog.lines.recovery.work import Work, Works
from cklog.model.actions import RunAction, action_of
from cklog.model.findings import Finding
from cklog.model.lines import LineEntry, RecoveryLine
from cklog.model.names import CheckpointId
from cklog.model.question import Question
from cklog.model.recovery_time import Span
from cklog.model.verdict import Draft
from cklog.model.wording import many
from cklog.policies.delta_number import RESTORE


def pieces_line(command: str, parser: OffersPieces, question: Question) -> Draft[RecoveryLine]:
    """Return the newest restorable version of every subtask.

    Raises
    ------
    NotFound : there are no chains
    UsageError : options that are about messages between subtasks
    """
    if question.failed or question.at or question.as_of is not None or question.earliest or question.against:
        options = "--failed, --at, --as-of, --earliest and --against"
        raise UsageError(f"{options}: a store by key knows versions only", "cklog chain --checkpoint N asks about one")
    draft = chain_answer(source_of_pieces(parser), ChainQuestion())
    found = draft.result
    bare = [ChainRestore(one.operator, one.subtask, 0, None, 0, None, None) for one in parser.pieces().bare]
    told = (row for row in found.together if row.operator is not None)
    named = sorted([*told, *bare], key=lambda row: (row.operator or "", row.subtask or 0))
    alone = len(named) < 2
    unsure = draft.indeterminate or any(finding.id == "missing-file" for finding in draft.findings)
    line = tuple(_entry(row, _newest(found, row)) for row in named)
    result = RecoveryLine(
        consistent=alone,
        protocol="uncoordinated",
        line=line,
        channels=(),
        sources=(),
        rolled_back=tuple(
            CheckpointId(e.operator, e.subtask, _newest(found, row) or 0)
            for e, row in zip(line, named, strict=True)
            if e.rolled_back
        ),
        useless=(),
        steps=(),
        domino=False,
        notes=found.notes,
        details={
            "headline": _headline(line),
            "together": [_together(row) for row in named],
        },
        runs=tuple(_run_action(row, _newest(found, row), unsure) for row in named),
    )
    findings = [*draft.findings, *([] if alone else [_unrelated(named)])]
    whole = Draft(command, result, findings, draft.inputs, draft.unrecoverable, unsure)
    return with_recovery_time(whole, pieces_works(named), question.rates)


def _newest(found: ChainAnswer, row: ChainRestore) -> int | None:
    """The newest version that is stored of a subtask."""
    return max((chain.newest for chain in _chains(found, row)), default=None)


def _chains(found: ChainAnswer, row: ChainRestore) -> list[ChainRow]:
    return [chain for chain in found.chains if (chain.operator, chain.subtask) == (row.operator, row.subtask)]


def _entry(row: ChainRestore, newest: int | None) -> LineEntry:
    return LineEntry(
        operator=str(row.operator),
        subtask=row.subtask or 0,
        checkpoint=row.checkpoint,
        time=None,
        uri=None,
        rolled_back=row.checkpoint != newest,
        state="initial" if row.checkpoint is None else "stored",
    )


def _run_action(row: ChainRestore, newest: int | None, undetermined: bool) -> RunAction:
    """What to do about one subtask; what it reads again is not known, for nothing here tells of its input."""
    return RunAction(
        run=f"{row.operator}/{row.subtask}",
        action=action_of(undetermined, nothing=row.checkpoint is None, older=row.checkpoint != newest),
        newest=None if newest is None else f"checkpoint {newest}",
        chosen=None if row.checkpoint is None else f"checkpoint {row.checkpoint}",
        note=None if undetermined else "cklog chain lists the pieces to read, in order",
        reads_more=True,
    )


def pieces_works(rows: Sequence[ChainRestore]) -> Works:
    """Return the bytes that each subtask reads, and how long that takes by how long storing them took."""
    parts = []
    for row in rows:
        time = None if row.time_ms is None else Span(row.time_ms / RESTORE, row.time_ms)
        size = 0 if row.checkpoint is None else row.bytes
        parts.append(Work(name=f"{row.operator}/{row.subtask}", bytes=size, logged=None, restore_ms=time))
    by = {"read": "as long as storing state took, up to 1.2 times that (US patent 9,471,438)"}
    nothing = "a store by key knows no messages"
    why = {"read": "no piece tells how long it took; --read-rate says it", "messages": nothing, "input": nothing}
    return Works(parts, by, why)


def _headline(line: Sequence[LineEntry]) -> str:
    back = sum(e.rolled_back for e in line)
    stored = sum(e.state == "stored" for e in line)
    older = f", {back} of them not at the newest version" if back else ""
    return f"{stored} of {many(len(line), 'subtask')} can be restored{older}."


def _together(row: ChainRestore) -> dict[str, object]:
    return {"subtask": f"{row.operator}/{row.subtask}", "chains": row.chains, "pieces": row.pieces, "bytes": row.bytes}


def _unrelated(rows: Sequence[ChainRestore]) -> Finding:
    message = (
        f"nothing here tells which checkpoints of the {len(rows)} subtasks go together: each is taken by itself, and "
        "whether their versions are of one moment is for their system to say"
    )
    return Finding("unrelated-chains", "warning", ".", message)

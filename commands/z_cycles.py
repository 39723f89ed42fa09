"""cklog z-cycles [PATH]"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, Failed, checkpoint_named, question
from cklog.errors import UsageError

Limit = Annotated[int, typer.Option("--limit", metavar="N", help="Witnesses for the first N of them; 0: for all.")]
Witness = Annotated[str, typer.Option("--witness", metavar="OP/SUB=CKPT", help="Only this one: why is it useless?")]
Audit = Annotated[
    bool, typer.Option("--audit-cic", help="Does the logged index of a communication-induced protocol rise as it must?")
]


@command
def z_cycles(
    common: Common,
    failed: Failed = None,
    as_of: AsOf = "",
    limit: Limit = 100,
    witness: Witness = "",
    audit_cic: Audit = False,
) -> None:
    """Useless checkpoints: those in no consistent line, ever, each with a shortest Z-cycle as its witness."""
    from cklog.graphs.z_cycles import ZCycleQuestion

    if limit < 0:
        raise UsageError(f"--limit {limit}: 0 or more")
    if audit_cic and witness:
        raise UsageError("--audit-cic looks at all checkpoints: not with --witness")
    asked = ZCycleQuestion(limit, checkpoint_named("--witness", witness) if witness else None)
    line = question(failed, as_of)
    common.answer(lambda run: run.audit_cic(line, limit or sys.maxsize) if audit_cic else run.z_cycles(line, asked))

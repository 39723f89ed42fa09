"""`cklog impact --annotate`: the answer, with what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from cklog.engine.reading import Reading
from cklog.errors import NotFound, UsageError
from cklog.impact.model import Impact, OutputImpact
from cklog.inputs.annotate import OffersResults, TrustInterval, annotate_results
from cklog.model.verdict import Draft, refuse_damage

FORMS = ("parquet", "jsonl")


@dataclass(frozen=True, slots=True)
class AnnotateQuestion:
    """`target` is a new folder; `results` a file or folder, "": the output's own in the run folder.

    `column` of times, "": `time` or `ts`; `output`, "": the only one.
    """

    target: str
    results: str = ""
    column: str = ""
    output: str = ""


class TimedResults(OffersResults, Protocol):
    """Results that tell which of their columns holds times."""

    def time_column(self) -> str: ...


def annotated_answer(
    found: Draft[Impact | None],
    asked: AnnotateQuestion,
    own: Callable[[str], str],
    read: Callable[[str], TimedResults],
    reading: Reading,
) -> Draft[Impact | None]:
    """Write the results of one output with their trust, and say so in the answer.

    Parameters
    ----------
    found : the impact by time
    own : the folder of an output's own results
    read : the parser of results, for a path

    Raises
    ------
    NotFound : there is no such output, or no results
    UsageError : several outputs, or no column of times
    OutputError : the target is there already, or cannot be written
    """
    if found.result is None:
        raise NotFound("--annotate: it is not known when the system crashed", "say so with --crash TIME")
    if reading.strict:
        refuse_damage(found.findings)  # before anything is written
    result = found.result
    output = _chosen(result, asked.output)
    results = read(asked.results or own(output.output))
    column = asked.column or results.time_column()
    spans = [TrustInterval(s.from_, s.to, s.trust) for s in output.trust if s.trust != "trustworthy"]
    form = next((form for form in FORMS if asked.target.rstrip("/").endswith(f".{form}")), results.form)
    again = next(((phase.from_, phase.to) for phase in output.phases if phase.phase == "duplicate"), None)
    written, findings = annotate_results(results, spans, column, asked.target, form, again, reading)
    told = ", ".join(f"{count:,} {trust}" for trust, count in written.trust.items())
    note = f"{written.rows:,} results of {output.output} with their trust are in {asked.target}: {told}"
    details = result.details | {"annotated": written}
    annotated = replace(result, notes=(*result.notes, note), details=details)
    return replace(found, result=annotated, findings=[*found.findings, *findings])


def _chosen(result: Impact, name: str) -> OutputImpact:
    found = [output for output in result.outputs if name in ("", output.output, output.query)]
    known = ", ".join(output.output for output in result.outputs)
    if not found:
        raise NotFound(f"--annotate: no output {name}", f"outputs: {known}")
    if len(found) > 1:
        raise UsageError("--annotate: several outputs, and each has results of its own", f"--operator: one of {known}")
    return found[0]

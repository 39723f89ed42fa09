"""`cklog impact --annotate`: the results of one output written with their trust, and the answer that says so."""

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
    """What to annotate, and where to.

    `target` : a new folder
    `results` : a file or folder, "": the output's own in the run folder
    `column` : that holds times, "": `time` or `ts`
    `output` : whose results, "": the only one
    """

    target: str
    results: str = ""
    column: str = ""
    output: str = ""


class TimedResults(OffersResults, Protocol):
    """A parser of results that knows which of their columns holds times."""

    def time_column(self) -> str:
        """Return the name of the column that holds times."""


def annotated_answer(
    found: Draft[Impact | None],
    asked: AnnotateQuestion,
    own: Callable[[str], str],
    read: Callable[[str], TimedResults],
    reading: Reading,
) -> Draft[Impact | None]:
    """Write the results of one output with their trust, and return the answer with a note of that.

    Parameters
    ----------
    found : the impact by time
    own : gives the folder of an output's own results
    read : gives the parser of the results at a path

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
    output = _output_named(result, asked.output)
    results = read(asked.results or own(output.output))
    column = asked.column or results.time_column()
    spans = [TrustInterval(s.from_, s.to, s.trust) for s in output.trust if s.trust != "trustworthy"]
    form = next((form for form in FORMS if asked.target.rstrip("/").endswith(f".{form}")), results.form)
    again = next(((phase.from_, phase.to) for phase in output.phases if phase.phase == "duplicate"), None)
    written, findings = annotate_results(results, spans, column, asked.target, form, again, reading)
    counts = ", ".join(f"{count:,} {trust}" for trust, count in written.trust.items())
    note = f"{written.rows:,} results of {output.output} with their trust are in {asked.target}: {counts}"
    details = result.details | {"annotated": written}
    annotated = replace(result, notes=(*result.notes, note), details=details)
    return replace(found, result=annotated, findings=[*found.findings, *findings])


def _output_named(result: Impact, name: str) -> OutputImpact:
    found = [output for output in result.outputs if name in ("", output.output, output.query)]
    known = ", ".join(output.output for output in result.outputs)
    if not found:
        raise NotFound(f"--annotate: no output {name}", f"outputs: {known}")
    if len(found) > 1:
        raise UsageError("--annotate: several outputs, and each has results of its own", f"--operator: one of {known}")
    return found[0]

"""What jobs are said to write, by their `job.json`, and what a broker's logs hold of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from cklog.errors import CorruptInput
from cklog.inputs.feeds import Feeds, Output, Rule, Written
from cklog.inputs.job_manifest import manifest_of
from cklog.kafka_logs.logs import PartitionLogs
from cklog.storage import Root

RULES: tuple[Rule, ...] = get_args(Rule)


def declared_outputs(root: Root) -> dict[str, Rule]:
    """Return the outputs that a job's manifest names, with what each does with what it is offered again.

    Raises
    ------
    CorruptInput : the manifest is no JSON object, or `outputs` in it is not as docs/joint.md has it
    """
    outputs = manifest_of(root).get("outputs", {})
    found: dict[str, Rule] = {}
    for name, said in outputs.items() if isinstance(outputs, dict) else ():
        given = said.get("rule", "appends") if isinstance(said, dict) else "appends"
        rule = next((one for one in RULES if one == given), None)
        if rule is None:
            told = f"{root.path}/job.json: outputs: {name}: rule must be one of {', '.join(RULES)}"
            raise CorruptInput(told, "see docs/joint.md")
        found[name] = rule
    return found


def with_declared(
    jobs: Sequence[Feeds], declared: Sequence[Mapping[str, Rule]], logs: PartitionLogs | None
) -> list[Feeds]:
    """Return jobs with the outputs that are declared for them: a topic is each of its partitions that is read."""
    names = {given.name for job in jobs for given in job.inputs}
    return [_with(job, mine, names, logs) if mine else job for job, mine in zip(jobs, declared, strict=True)]


def _with(job: Feeds, mine: Mapping[str, Rule], names: Iterable[str], logs: PartitionLogs | None) -> Feeds:
    known = {output.name for output in job.outputs}
    more = [
        _in_logs(Output(name, None, rule), logs)
        for said, rule in mine.items()
        for name in sorted(names)
        if name not in known and said in (name, name.rpartition("-")[0])
    ]
    written: dict[str, Any] = {output.name: Written(None) for output in more}
    points = tuple(replace(point, written={**written, **point.written}) for point in job.points)
    return replace(job, outputs=(*job.outputs, *more), points=points)


def _in_logs(output: Output, logs: PartitionLogs | None) -> Output:
    """The output with what its partition's log holds, if that is here and could be read."""
    if logs is None or all(folder.name != output.name for folder in logs.layout.folders):
        return output
    found = logs.partitions([output.name])[output.name]
    return replace(output, end=None if found.unread else found.restart_end, first=found.log_start)

"""From a checkpoint that is rolled back to the failure that is the reason: a chain of orphan messages."""

from __future__ import annotations

from cklog.lines.sentences import rollback_sentence
from cklog.model.lines import RecoveryLine

_MOST_STEPS = 50
_MOST_CHAINS = 5_000


def orphan_chains(line: RecoveryLine) -> dict[str, list[int]]:
    """Return for each checkpoint that is rolled back, as `op/sub=n`, the steps of `line` that undo it, in order.

    The first is about its own subtask; each following one is about the sender whose fall made orphans of what the one
    before had received. The last one's sender has lost its state, or falls for no message.
    """
    last: dict[str, int] = {}
    before: list[int] = []  # for each step the one that made its sender fall before it; -1: none did
    of_subtask: dict[str, list[int]] = {}
    for i, step in enumerate(line.steps):
        sender = step.because.channel.partition("->")[0]
        before.append(last.get(sender, -1))
        name = f"{step.operator}/{step.subtask}"
        last[name] = i
        of_subtask.setdefault(name, []).append(i)
    found: dict[str, list[int]] = {}
    for checkpoint in line.rolled_back[:_MOST_CHAINS]:
        name = f"{checkpoint.operator}/{checkpoint.subtask}"
        # The first fall of its subtask that ends below it.
        i = next((i for i in of_subtask.get(name, ()) if line.steps[i].to < checkpoint.checkpoint), -1)
        chain: list[int] = []
        while i >= 0 and len(chain) < _MOST_STEPS:
            chain.append(i)
            i = before[i]
        if chain:
            found[f"{name}={checkpoint.checkpoint}"] = chain
    return found


def step_sentences(line: RecoveryLine) -> list[str]:
    """Say every step in words, in their order."""
    return [rollback_sentence(step) for step in line.steps]

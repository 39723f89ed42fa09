"""Chains of base and delta checkpoints: what can still be restored, from what, and what that takes.

Pieces come from parsers as rows of `cklog.inputs.pieces.PIECES`; which format they had makes no difference here. What
may be deleted is not decided here but in `cklog.retention`.

- `source`: the pieces of one run as they are handed over
- `build`: pieces in any order to versions of chains, and the piece that stands for each version
- `flaws`: findings about pieces by themselves, such as impossible parents
- `ways`: the way of every version down to its base, all ways at once
- `restorable`: the chains themselves: what each can restore, from which pieces, or where its first link fails
- `model`: the values of the answer of `chain`
- `answer`: the question and the answer of `chain`
- `findings`: findings of that answer, and sentences about links that fail
- `view`: that answer as text
"""

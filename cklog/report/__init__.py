"""The one document of an incident: what all questions about a run have for an answer, and what to do, in order.

The room asks nothing that a command does not ask: it puts the answers together and lays them out. What to do, in order,
is the runbook's.

- `model`: the report as a value, which JSON prints
- `compose`: the questions, each of which may be refused or fail without harm to the others
- `orphans`: from a checkpoint that is rolled back to the failure that is the reason, by orphan messages
- `evidence`: the files that decided, with their hashes
- `parts`: the parts as titles, sentences and tables, the same for each document
- `markdown`: the document as Markdown, whole or as a message of a chat
- `html`: the document as one file of HTML
- `curves`: failures over time as a curve
- `view`: the report on a terminal

Beside them `assets/` has the page, its style and its scripts.
"""

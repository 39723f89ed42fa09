"""The words of cklog as types: tables as Arrow schemas, results as frozen dataclasses, questions, verdicts.

It knows no file, no format and no analysis: what several rooms speak of stands here, what one room answers
stands there.

Conventions, stated once and held everywhere:

* Sequence numbers count the messages of one channel in the sender's order and start at 0.
* Watermarks are **exclusive**; `sent` and `received` hold the *next* sequence number, like a Kafka offset.
  `received` is the highest number received + 1, so consistency needs no FIFO channel.
* A message m is an orphan of a line if `sent <= m < received`, and in flight if `received <= m < sent`,
  with `sent` of the sender's chosen checkpoint and `received` of the receiver's.
* A channel that a checkpoint does not mention keeps the watermark of the checkpoint before it, 0 at first.
* Checkpoint 0 is the initial state and exists for every subtask, whether a record says so or not.
* Ranges are half-open. Times are integer milliseconds since the epoch, UTC.

Public modules:

* `schemas`: the tables of the native run folder
* `names`: subtasks, channels and checkpoints by name
* `findings`: findings and the places they speak of, inputs that an answer rests on
* `options`: how to read: what every command takes
* `question`: what is asked about a line, and which Kafka logs it is held against
* `verdict`: drafts, answers, and how one becomes the other
* `checks`: what was proved or refuted of a given line
* `audits`: what an engine restored, held against what it should have
* `actions`: what to do about a run, the same for every format
* `about`: which of several runs a finding is about
* `unchecked`: what an action takes for granted, as rows and in one sentence
* `lines`, `zigzag`, `eventual`: results that several rooms share
* `recovery_time`: how long a recovery takes, and what somebody says of that
* `inspection`: what `inspect` answers whatever lies there
* `trust`: how far a result can be trusted
* `moments`: times as people write them
* `values`: what kind of JSON value something is
* `wording`: numbers, names and times in sentences
"""

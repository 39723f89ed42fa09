"""A run given as tables of records, or as raw events that are made into records.

* `reading`: records read, put in order, and the chains that they tell of
* `evidence`: what was read for one question, and the line planned from it, as values
* `plan`: the line and what follows from it
* `lossless`: the newest line of which the logs still have every message
* `actions`: what to do about the run, and which damage touches that
* `absent`: subtasks that something names, and of whose state nothing here tells
* `verify`: a given line, proved or refuted
* `inspection`: what is here
* `channel_logs`: messages in the channels' logs
* `cascade`: operators with output queues beside those with checkpoints
* `recovery`, `queue_recovery`: what a recovery has to read and to process again
* `impact`: what a restart does to the results of sinks
* `latency`: how long messages took into sinks
* `retention`: which checkpoints may go
* `queue_retention`: how far output queues may be cut
* `runbook`: steps that take a job from a crash to its restart
"""

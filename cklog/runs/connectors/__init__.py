"""A run given as the offsets of source connectors (Kafka Connect): where each one resumes, and what comes of that.

* `gtids`: sets of transactions, as MySQL and MariaDB write them
* `positions`: where in a source an offset is; which of two comes first, where that is defined
* `retained`: whether the source's log still holds a position (`--source-from`)
* `taken`: what of a data topic comes once more after a restart (`--taken`, or topics beside the offsets)
* `told`: what the command line tells of connectors, by name
* `judged`, `judging`: each stored offset with all of this, and how it is come by
* `line`: the line of connectors, what is here, checks
* `runbook`: steps that set connectors back by Connect's offset API
"""

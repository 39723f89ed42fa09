"""A run given as the offsets of source connectors (Kafka Connect): where each one resumes, and what comes of that.

* `mirrored`: connectors that copy from Kafka, compared with the logs that they copy from
* `taken`: what of a data topic comes once more after a restart (`--taken`, or topics beside the offsets)
* `judged`, `judging`: each stored offset with all of this, and how it is come by
* `line`: the line of connectors, what is here, checks
* `runbook`: steps that set connectors back by Connect's offset API
"""

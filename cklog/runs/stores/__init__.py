"""A run given as state stores that are rebuilt from changelogs (Kafka Streams).

* `ranges`: what a task's stores read again, by its own files, then inside the changelogs
* `compaction`: stores that read on where their changelog was compacted since
* `recovery`: what a recovery has to read and to apply again
* `action`: what to do about an application, and which stores are deleted first
* `line`: what each store reads again, the line of tasks, what is here
* `runbook`: steps that take an instance from a crash to its restart
"""

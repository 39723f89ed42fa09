"""A run given as state stores that are rebuilt from changelogs (Kafka Streams).

* `line`: what each store reads again, the line of tasks, what is here
"""

"""What parsers hand over: values and protocols, by the kind of run. Nothing here reads a format or judges a run.

* `offers`: a protocol for each kind of run, the one place to look when writing a parser
* `tables`, `damage`: a table of records read by one scan; damage as findings
* `trouble`: what could not be read at all, in every answer
* `queues`: output queues
* `batches`, `stored_state`, `sink_files`: logs of micro-batches and the version that wrote them, state, file sinks
* `snapshots`: snapshots of jobs and the files that they name
* `partitions`, `record_batches`: partitions of a broker, and their batches as rows
* `stores`: state stores and the offsets beside them
* `connectors`: offsets that source connectors have stored
* `job_manifest`: what people say of a job of any format
* `member_names`: what the names of members tell: that one is damaged, or that a record is another table's
* `sink_tables`: tables that a job writes to, their commits and stamps
* `feeds`: what a job reads of others and writes for them, as of each point to restart from
* `pieces`: base and delta checkpoints
* `annotate`, `annotate_files`: results with a trust column, laid over files of results
"""

"""Tables that a job writes to, read by their formats' own libraries: commits and what streams stamped on them.

iceberg, delta, paimon, hudi      one module a format, each of which gives `cklog.inputs.sink_tables.SinkTable`
"""

"""Scans, the one way to read anything big: splits × kernel × reduce, run here or on Spark.

Which engine runs a scan, and into how many parts a log is cut, shows in no answer.

* `scan`: splits, readers, kernels, reduces, damage; what an engine is
* `reading`: how a run is read, as one value
* `question_cache`: a cache of what one question reads and plans
* `choosing`: the engine that scans, as `--engine` says or as `auto` expects
* `costs`: how long a scan takes on each engine, estimated
* `sizes`: what a scan reads, measured for the estimate
* `clusters`: the Spark that options or the environment name
* `local`: threads in this process
* `spark`: tasks of Spark, classic or over Connect
* `spark_session`: sessions as the options say
* `spark_driver`: a JVM of this process, and how nothing is left of it
* `spark_errors`: what Spark raises, as one line
* `shipping`: cklog as a zip for executors that lack it
* `merge`: partial rows of equal keys made one
* `spark_tasks`: what tasks of Spark do: how many splits have come back, and whether anybody works
* `patience`: how long Spark may do nothing
* `damage`: damage counted, the first places kept
"""

"""Many runs at once (`cklog scan`): every run below some folders, what to do about each, one row each.

* `model`: the rows, and what is asked
* `finding`: which runs lie below a folder, by one listing
* `asking`: one run asked for its line; whatever is wrong with it is told in its row
* `time_limit`: a limit on how long that takes
* `worker`, `workers`: processes of this machine that ask runs
* `tasks`: the same as splits, for the Spark engine
* `answer`: rows chosen and sorted
* `view`, `prometheus`: what people and Prometheus are shown
"""

"""How long a recovery from a line takes, by rates that the logs show or somebody says.

* `work`: what each part of a run has to do, and how long that takes it alone
* `order`: when parts are ready that wait for what others send again
* `time`: all parts together, the backlog that arrives meanwhile, and what a bound says of it
* `view`: the same as a section of the answer about a line
"""

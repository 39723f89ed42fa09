"""Several jobs that feed each other through topics or tables: one line for all, and in which order they restart.

* `rules`: what a restart does to an output: what stays, what must go first, what comes twice
* `graph`: jobs as a graph, and the newest points of all that fit together
* `declared`: what jobs are said to write, and what a broker's logs hold of it
* `order`: in which order jobs restart
* `answer`: the question put to every job, and points that a job's own kind refuses taken out
* `telling`: the answer: a row and a command for each job, links, reasons
"""

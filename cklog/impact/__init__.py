"""What a crash and a recovery do to results by time, for a system on one machine (Brand et al., BTW 2017).

An answer is derived from the dataflow, the times of crash and restart, and what is logged of the sources' elements: no
result is looked at. Sinks of distributed runs are in `cklog.impact.sinks`.

- `model`: the paper's words as values: windows, operators, phases, trust, and the answer
- `dataflow`: the operators of a manifest, in order, with their classes
- `system`: the events of a system log, and what was logged last
- `crash`: when the system crashed and when it was back
- `checkpoint`: the stored checkpoint that a recovery goes back to
- `elements`: the elements of a source, as far as they are known
- `logs`: the elements that channel logs list, read by scans
- `convergence`: how long results are wrong after a start without state
- `output`: the phases and the trust of one output
- `recovery`: which recovery classes the evidence supports, and the tasks of the recovery
- `answer`: the answer of `cklog impact`, from all of these
- `annotate`: the results of an output, written with their trust
- `sinks`: the same of distributed runs, sink by sink
- `view`: the answer as sentences, rows and drawings
"""

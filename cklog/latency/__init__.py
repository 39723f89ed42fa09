"""How long records took to the sink, step by step: what a failure and checkpoints did to that, and when it was over.

CheckMate's Figures 9 to 11 and Meteor Shower's Figure 15, from anybody's logs.

- `model`: the question and the answer
- `histogram`: latencies counted by step and millisecond, and their percentiles
- `results`: the latencies of a sink's result files (those of messages: `cklog.runs.records.latency`)
- `answer`: what is normal, the way back to it after a failure, and steps with and without checkpoints
- `view`: the answer as sections of rows, sentences and a curve
"""

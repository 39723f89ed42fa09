"""Raw events (send, receive, checkpoint) turned into checkpoint records, with what damage may have taken of them.

What the records lead to is decided elsewhere: from here on they are treated like any others.

- `raw_events`: reads events in two to four scans, and hands over records, current states and deliveries
- `kernels`: those scans' kernels and the schemas of what they find
- `batch`: a batch of events as numbers
- `order`: the local order of each subtask's events, and where it took its checkpoints
- `losses`: from which place on a subtask's events may be incomplete
- `records`: the watermarks that each checkpoint event stands for, as checkpoint records
- `channels`: whether the sequence numbers of each channel are what they must be
- `steps`: every send and receive, for what needs all of them
- `current_state`: what subtasks that did not fail hold now
"""

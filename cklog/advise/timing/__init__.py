"""When to checkpoint a whole application, by the sizes of its states over time (Meteor Shower, section III-C).

Public modules:

* `state_sizes`: samples as arrays, the size at any moment, sums as polylines
* `turning_points`: turning points, dynamic HAUs, and the threshold of alert mode
* `choice`: the moments that the controller would have chosen
* `answer`: the answer of `advise timing`, beside the best, random and periodic moments
* `view`: that answer for people
"""

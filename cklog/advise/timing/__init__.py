"""When to checkpoint a whole application, by the sizes of its states over time (Meteor Shower, section III-C).

Public modules:

* `state_sizes`: samples as arrays, the size at any moment, sums as polylines
* `choice`: the moments that the controller would have chosen
* `answer`: the answer of `advise timing`, beside the best, random and periodic moments
* `view`: that answer for people
"""

"""Coordinated rounds: which are complete, where the newest hangs, and what a restart takes (Meteor Shower, ICDE 2012).

* `answer`: the answer of `cklog rounds`
* `token_rounds`: rounds by the tokens that the system log tells of
* `hangs`: what a round that is not complete waits for
* `tuples`: the messages that go with a round
* `burst`: what a failure of whole nodes takes with it, and what restarts where
* `sweep`: what is left when every node, rack or pair of nodes fails
* `view`: the answer for people
"""

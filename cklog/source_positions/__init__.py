"""Positions in the logs of sources: which of two comes first, and whether a log still has what follows one.

* `gtids`: sets of transactions, as MySQL and MariaDB write them
* `positions`: where in a source an offset is; which of two comes first, where that is defined
* `retained`: whether the source's log still has a position (`--source-from`)
* `named_options`: options of the form NAME=VALUE, by the name of a source
"""

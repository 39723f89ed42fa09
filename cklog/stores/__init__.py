"""Object stores: how they are reached, listed and read by ranges, and how long an answer of theirs is waited for.

A place in a store is a URI. Which options lead there its query says by number (`?store=1`), never by value: whatever
of a URI gets into a message, no credential is in it.

- `options`: `--store K=V`, what the environment says, and what becomes of both
- `opening`: a path or URI opened or looked at, on this machine or in a store
- `places`: URIs as cklog writes them for itself
- `trees`: files and folders that were listed below a place
- `local`: a file of this machine opened: a regular one, in a directory that was listed
- `store`: a store that is open, what it refused, and its number
- `bucket`: its file system: what it lists and gives; loaded when it is first asked
- `files`: a file of a store, read by ranges
- `requests`: requests for ranges: bounded tries, and a reason in one line
- `patience`: how long a store is waited for, and what is said of one that does not give
- `signing`: the signature of a request (AWS, version 4)
"""

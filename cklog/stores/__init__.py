"""Object stores: how they are reached, listed and read by ranges, and how long an answer of theirs is waited for.

A place in a store is a URI. Which options lead there its query says by number (`?store=1`), never by value: whatever
of a URI gets into a message, no credential is in it.

- `options`: `--store K=V`, what the environment says, and what becomes of both
- `opening`: a path or URI opened or looked at, on this machine or in a store
- `places`: URIs as cklog writes them for itself
- `trees`: files and folders that were listed below a place
- `local`: a file of this machine opened: a regular one, in a directory that was listed
- `store`: a store that is open, what it refused, and its number
- `bucket`: a bucket of a store, by whichever of the next two
- `s3`: a bucket of S3, asked by requests of our own
- `arrow`: a bucket that pyarrow reads; loaded when it is first asked
- `clients`: pyarrow's clients of Google, Azure and HDFS
- `client_process`: such a client in a process of its own, which what a store answers may end
- `files`: a file of a store, read by ranges
- `requests`: requests to S3: ranges, pages of a listing, bounded tries, and a reason in one line
- `listings`: what pages of a listing name, checked
- `exchanges`: one request over HTTP and its answer, checked before it is believed
- `deadlines`: how long a request may still take
- `patience`: how long a store is waited for in all, and what is said of one that does not give
- `identities`: the keys with which S3 is asked, of options, profiles and roles
- `signing`: the signature of a request (AWS, version 4)
"""

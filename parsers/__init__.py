"""One module per on-disk format; each turns files into the tables of `cklog.model`."""

"""One room per system; each turns files into the values of `cklog.inputs`."""

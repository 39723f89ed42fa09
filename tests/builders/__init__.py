"""Writers of what tests read: files of every format, by its specification and apart from cklog's readers."""

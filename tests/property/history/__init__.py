"""Raw events and their kernels, against one row after the other."""

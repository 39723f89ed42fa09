"""What another setting would have given on this log."""

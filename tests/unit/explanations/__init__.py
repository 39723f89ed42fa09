"""Pages of findings, exit codes and errors."""

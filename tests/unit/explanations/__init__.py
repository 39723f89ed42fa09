"""Pages of findings, actions, exit codes and errors."""

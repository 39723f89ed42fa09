"""What every plan of deletion shares: rows, policy, files, links between checkpoints, the view."""

"""What a crash and a recovery do to results by time, for a system on one machine (Brand et al., BTW 2017)."""

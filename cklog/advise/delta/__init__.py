"""D: how many deltas follow a base."""

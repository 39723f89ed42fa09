"""Chains against definitions, on random trees."""

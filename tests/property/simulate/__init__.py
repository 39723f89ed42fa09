"""The simulators against definitions, and against the papers' figures."""

"""A system on one machine that crashes and recovers (Odysseus)."""

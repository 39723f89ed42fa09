"""Methods of the papers that say when to checkpoint, as pure functions."""

"""Writers of what sinks keep in checkpoints, by the layouts of their serializers."""

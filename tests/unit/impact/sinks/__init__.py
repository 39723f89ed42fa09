"""The impact on sinks: which results come again, or never."""

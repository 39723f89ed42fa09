"""Persisted output queues (CEC): the eventual checkpoint, its extent and its replay."""

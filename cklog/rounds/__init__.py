"""Coordinated rounds: complete, hanging, what a restart takes (Meteor Shower)."""

"""Rows against the tables of `cklog.model`; the base class of plug-ins."""

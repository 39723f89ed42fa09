"""Runs made by known protocols and workloads, written as run folders."""

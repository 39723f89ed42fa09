"""Flink itself, on a mini-cluster: killed, asked about, damaged and restored. It runs where `CKLOG_FLINK` says so."""

"""Decoders of formats that no library reads, written from their descriptions; they share nothing with the parsers."""

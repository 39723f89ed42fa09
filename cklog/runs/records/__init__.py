"""A run given as tables of records: native folders, CheckMate dumps, plug-ins."""

"""How answers are written: text made harmless, and the formats."""

"""The slow truth: what is right by the definitions, one record after the other, apart from what is tested."""

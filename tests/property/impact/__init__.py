"""The announced impact against crashes that are really run."""

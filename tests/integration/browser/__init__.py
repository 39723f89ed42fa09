"""Reports as people see them: opened from file:// in headless Chromium, without a network."""

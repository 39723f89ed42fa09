"""The house itself: links, packages, import names, and pages that are true."""

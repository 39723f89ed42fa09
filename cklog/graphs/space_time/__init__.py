"""Space-time diagrams as SVG."""

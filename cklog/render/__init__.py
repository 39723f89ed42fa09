"""Answers as table, JSON, JSON lines, CSV or Markdown, and the parts that all views are made of."""

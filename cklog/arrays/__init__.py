"""Arrays of integers without a subject: sorting, spans, codes of strings, many binary searches at once."""

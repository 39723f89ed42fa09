"""Answers as table, JSON, JSON lines, CSV or Markdown, and the parts that all views are made of.

What an answer says is put in words in the `view` modules of the rooms above; here it is only laid out.

- `formats`: an answer in each of the formats, and the JSON envelope
- `view`: sections and views, and the view of each command
- `curve`: a curve drawn as text
- `svg`: elements of SVG drawings
- `fragment`: an answer as a piece of HTML
- `pictures`: SVG converted to PDF and PNG
- `text`: texts from logs, made harmless
"""

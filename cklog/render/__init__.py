"""Answers as table, JSON, JSON lines, CSV or Markdown, and the parts that all views are made of.

What an answer says is put in words in the `view` modules of the rooms above; here it is only laid out.

- `formats`: an answer in each of the formats, and the JSON envelope
- `markdown`: an answer as Markdown
- `brief`: the verdict alone, and the verdict again below a long answer
- `view`: sections and views, and the view of each command
- `curve`: a curve drawn as text
- `tables`: lists of an answer as tables for programs
- `shell`: an answer as `key=value` lines, for shells
- `svg`: elements of SVG drawings
- `short_ids`: ids that a terminal shows cut
- `fragment`: an answer as a piece of HTML
- `pictures`: SVG converted to PDF and PNG
- `pdf`: the objects of a PDF in the order in which they are met
- `text`: texts from logs, made harmless
"""

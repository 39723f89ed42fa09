"""What findings, actions, exit codes and errors mean, by pages: texts of the documents, for terminals and programs.

`findings.md` and `json.md` are links to the documents, which ship with the package: what is explained stands once.

- `pages`: the tables of the documents as pages, one for each id
- `answer`: the pages that are asked for, or a line for each
- `view`: pages as text
"""

"""What the site has that no page in `docs/` holds: a page for each command, made of what `cklog COMMAND -h` prints."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from mkdocs.structure.files import File, Files

_FOLDER = "commands"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the commands, and one that lists them."""
    names = _commands()
    for name in names:
        text = f"# cklog {name}\n\n```text\n{_help(name)}\n```\n"
        files.append(File.generated(config, f"{_FOLDER}/{name.replace(' ', '-')}.md", content=text))
    rows = "".join(f"- [`cklog {name}`]({name.replace(' ', '-')}.md)\n" for name in names)
    listed = f"# Commands\n\n```text\n{_help('')}\n```\n\n{rows}"
    files.append(File.generated(config, f"{_FOLDER}/index.md", content=listed))
    return files


def _commands() -> list[str]:
    """Return every command, those of groups with the group's name in front."""
    from cklog.commands.app import Commands

    return list(Commands.places)


def _help(name: str) -> str:
    """Return what `-h` prints, in 80 columns."""
    ran = subprocess.run(
        [sys.executable, "-m", "cklog", *name.split(), "-h"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )
    return ran.stdout.rstrip()

"""The one document of an incident: held against the commands that answer its parts alone."""

"""Tables that jobs write to: by their formats' libraries where these write, else by the format."""

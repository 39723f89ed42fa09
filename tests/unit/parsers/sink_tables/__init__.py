"""Tables that jobs write to, each format against its own library, or what that wrote."""

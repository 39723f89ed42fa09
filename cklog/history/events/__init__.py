"""Raw events (send, receive, checkpoint) turned into checkpoint records."""

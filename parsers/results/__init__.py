"""Result files, read and written with their trust."""

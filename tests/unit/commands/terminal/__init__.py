"""What stands between the program and a terminal."""

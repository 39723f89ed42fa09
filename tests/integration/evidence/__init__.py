"""What an answer rests on: files of versions that are not known, and folders that once had a wrong answer."""

"""The impact of a crash by time, in numbers and pictures, and results with their trust."""

"""What has to hold of any answer.

`contradictions`: next to its own findings. `agreement`: next to what other commands say of the same folder.
"""

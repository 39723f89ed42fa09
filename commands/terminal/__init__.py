"""What is shown beside the answer, on stderr.

* `stages`: the stages of an answer, told as they end (`-v`) or drawn while they last
* `bar`: the drawing, by Rich, which is loaded when there is something to draw
"""

"""Differential fuzzing: each hand-written decoder against another decoder of the same format, on the same bytes.

    python -m tests.differential --count 200000 --seed 0 --jobs 2
    python -m tests.differential --count 200000 --decoder kafka-batches
    python -m tests.differential --replay avro:4711

A *case* is a number. From a decoder's name and a case follow some bytes: a valid input that uses the options of the
format (`decoders`), and mostly damage to it (`mutations`), of whole inputs and of what stands inside compressed or
checksummed parts, whose checksums are then made right again. Both decoders read the bytes, and `verdicts` compares what
they say. `worker` runs cases in a process with a limit of memory, `campaign` runs each case in two processes that
differ in what malloc fills memory with, in the order of the cases and in bounds checks, and adds up.
Where no library reads a format, `references` has a decoder written from its description, apart from the parser.
"""

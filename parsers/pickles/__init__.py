"""Pickles read without building objects: plain data comes out, and something that stands for each object.

A pickle is a program that can call anything. Nothing here imports or calls what a pickle names, and memory and time
stay within a small multiple of its bytes.

- `restricted`: `load` and `load_from`, and the opcodes that are done
- `arguments`: what stands behind opcodes
- `machine`: the stack, marks and memo that opcodes work on, and their limits
"""

"""Harnesses: one file each that says how the program is pointed at a server, as data.

Rule of the folder: what a person has configured is left alone. A harness gets its settings by
environment variables or from a folder of treadle's own, and the key is never written to a file.
"""

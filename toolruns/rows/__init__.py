"""The rows of a trajectory, kept under a handle nobody can guess, and how they are looked into.

Rule of the room: a handle is checked against its owner on every use, and a foreign handle answers
exactly as an unknown one. Rows are files on this machine; who owns them and until when stands in a
book that survives a restart. What a model writes as SQL is treated as running code.
"""

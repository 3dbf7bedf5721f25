"""The command `treadle`: what an operator and an engineer type.

Rule of the room: a command is one file that reads its options, asks a server over HTTP or reads a
config, and says what it found twice: for a person, and with `--json` for a program. Exit code 0:
fine; 1: the answer is no; 2: it could not be asked. Nothing here is imported by a server.
"""

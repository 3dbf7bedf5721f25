"""Which replica, and why: pure arithmetic over block hashes, load and hints.

Rule of the room: no clock, no I/O, no randomness of its own. `now` (seconds, any monotone clock) is
an argument, chance comes from a seed and a counter, so the same calls give the same choices.
Imports the standard library, msgspec and xxhash, and no other room.
"""

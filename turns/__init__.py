"""The words: what a turn is and what can happen in it.

Rule of the room: msgspec structs and nothing else that acts. Every other room speaks these
words; a word that only one room needs lives in that room. Nothing here does I/O, knows a clock
or imports another room.
"""

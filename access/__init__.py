"""Who may call, and how much: keys, what they allow, and what of it is used. Pure: no I/O here.

Rule of the room: the time is an argument, a secret is compared in constant time and never kept,
and whoever refuses says what to do in the words of `turns.errors`.
"""

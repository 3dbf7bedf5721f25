"""How each public API spells a turn: bytes to Turn, events to bytes.

Rule of the room: one folder an API, and no API imports another; what they share (framing, bodies,
headers, errors, ids, model lists) stands beside the folders. Everything here is a pure function or
a machine of plain Python: no clock, no socket, nothing but msgspec. `registry.APIS` is the face.
"""

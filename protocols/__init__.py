"""How each public API spells a turn: bytes to Turn, events to bytes."""

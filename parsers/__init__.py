"""From frames to events, by a table."""

"""The place that processors import from."""

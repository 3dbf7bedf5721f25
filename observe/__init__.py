"""Taps on the event stream: metrics and traces; the core calls taps, it holds no counters."""

"""Taps on the event stream: metrics and logs; the core calls taps, it holds no counters.

Rule of the room: a tap is told what happened, in small frozen structs that carry all it needs
(times and durations in seconds, from the caller's clock), so it keeps no state per turn and asks
for nothing. Nothing is told per token. A tap that fails is counted and never felt.
"""

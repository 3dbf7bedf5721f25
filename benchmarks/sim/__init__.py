"""A fleet on a virtual clock: the router's own code, and engines paced as the scripted engine is.

What is real: `router/` whole (policies, index, predictions, queue), the scripted engine's prefix
cache and its arithmetic of a step. What stands in: turns are names of blocks and counts of tokens,
an engine jumps over steps that are all alike, and messages take a fixed time. Seeds are fixed.
"""

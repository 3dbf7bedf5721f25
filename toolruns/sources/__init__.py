"""Where rows come from. A source opens late, gives what it is asked for, and closes at once.

Rule of the room: one file a kind. A source reads only (no statement of a model may change
anything), never reads ahead by more than one pull, and after `close` nothing of it is left
upstream: cursors closed, statements cancelled, connections given back. It knows no budget and no
predicate.
"""

"""The synopsis: the O(KB) summary of a stream that the model reads in place of the rows.

Rule of the room: every part is incremental and bounded. Exact parts (rows, nulls, min and max, the
head, distinct values and their counts up to a limit) equal those of the whole prefix; sketches stay
inside their error bounds, and the rendering says which is which.
"""

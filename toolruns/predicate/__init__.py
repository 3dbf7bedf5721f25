"""`consume_until`: the small language in which a caller says when it has seen enough.

Rule of the room: text is parsed once, before any upstream is opened, and errors point at the
column. There is no eval, no regular expression and no loop that the text controls; size and depth
are bounded. The predicate holds at the first row whose prefix satisfies it, however the rows were
cut into chunks; where a value is unknown (no rows yet, null, division by zero) it does not hold.
"""

"""A streaming tool call as a trajectory: the model reads a synopsis, and can stop the stream.

Rule of the room: what decides is pure. `contract`, `endings`, `signals`, `budget`, `predicate/`,
`synopsis/`, `machine`, `decisions`, `trajectory`, `replay` and `plan` hold no clock, no loop and no
socket: `now` is an argument and rows are Arrow batches. What waits and reads (`runner`, `sources/`,
`rows/`, `gateway/`) is a shell around them: it carries out actions and never decides.
"""

"""The gateway: streaming tools for any MCP client, over Streamable HTTP, in both eras.

Rule of the room: one text block is the result, never `structuredContent` (harnesses then drop the
text); what must be read stands in its first line. A caller's mistake is a tool error that says what
to do, before anything upstream is opened. Every run has its own deadline here, because a client's
cancel does not always arrive.
"""

"""Tools that we run for the client, inside a turn: MCP servers that a request names.

Rule of the room: a turn with such tools is a chain of ordinary turns above the conductor, each with
its own prompt, replica and ledger entry; its client sees one. Only servers of the allow-list are
spoken to, and a client's key is shown to none but our own gateway. Whatever ends the turn ends
the calls that run for it.
"""

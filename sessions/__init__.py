"""What outlives a turn: sessions, replies, the ledger, stored responses, hints as received.

Rule of the room: one interface (`store.py`), one store in memory, one in Redis, and one test suite
for both. Everything is bounded in time (each record has a TTL) and belongs to an owner, who is part
of its key: a foreign record and an unknown one cannot be told apart. Nothing here is on the
per-token path, and a store that is away never fails a turn (`guarded_store.py`).
"""

"""Engines behind one small interface: token ids in, frames out, abort, stats, KV events, drain."""

"""Which replica, and why: pure arithmetic over block hashes, load and hints."""

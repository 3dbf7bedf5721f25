"""One file per model family, as data, and the registry."""

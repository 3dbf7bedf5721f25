"""Turn and Family to token ids."""

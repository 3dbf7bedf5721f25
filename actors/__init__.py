"""Plain classes that live in processes."""

"""Wiring only: settings in, Serve application out."""

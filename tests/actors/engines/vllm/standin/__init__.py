"""Stands on a path of its own, for a process of its own: see `torchvision` in it."""

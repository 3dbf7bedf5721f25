"""How models take pictures: one file a kind of processor, and the way from a model folder to it."""

"""The scripted engine: no model, everything else real.

Rule of the folder: what decides is pure (`scene`, `scenario`, `calls`, `schema`, `compose`), what
steps is pure and takes `now` as an argument (`timing`, `cache`, `seat`, `schedule`), and one file
does the waiting (`engine`). So a test can step it by hand and a simulator can run it on a virtual
clock.
"""

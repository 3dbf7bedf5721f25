"""Attachments: the files and pictures of a request, brought into a form that a model can be given.

Rule of the folder: nothing here runs on the event loop for longer than a look; what a file holds is
read in a process of its own, and what a URL leads to is fetched only where an operator allows it,
from addresses of the open internet alone.
"""

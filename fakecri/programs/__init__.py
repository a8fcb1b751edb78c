"""What the main programs of containers do: run, serve, listen.

What must never happen here: a program that goes on after its container has ended.
"""

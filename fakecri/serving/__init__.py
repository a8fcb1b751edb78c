"""The fake for other processes: sockets, a loop in the background, command line arguments.

What must never happen here: a socket of a living process is taken away.
"""

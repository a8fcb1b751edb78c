"""The CRI on the wire: its methods and messages, and the shape of what answers them.

What must never happen here: a method is known that the protocol does not have.
"""

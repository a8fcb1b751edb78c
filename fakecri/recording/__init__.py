"""What was called: the recorder, its files, and what is learnt from them.

What must never happen here: a call that is lost or changed by being written down, or a password
kept.
"""

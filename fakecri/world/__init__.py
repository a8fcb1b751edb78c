"""The fake world beyond its calls: what there is, what tests do to it, how it is put together.

What must never happen here: something happens to a container, and the calls that wait for it are
not told.
"""

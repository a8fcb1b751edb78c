"""The CRI methods over the core.

What must never happen here: state that the core does not have; a call that changes its request.
"""

"""Pods: created Pending, changed where the API allows it, deleted with a grace period. `pods` has
the rules, read it first.
"""

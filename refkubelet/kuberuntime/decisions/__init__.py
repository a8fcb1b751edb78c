"""Decides what to do with a pod, from its spec and the runtime's records alone. Read `actions`
first; `pod_actions` has the values that it returns.
"""

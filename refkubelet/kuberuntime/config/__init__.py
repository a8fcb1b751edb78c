"""The configuration of sandboxes and containers, field by field.

What must never happen here: a call of the runtime, or a field the kubelet leaves empty.
"""

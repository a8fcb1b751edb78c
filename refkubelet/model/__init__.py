"""Pods and values as the rest of the kubelet uses them: API objects, amounts, names, defaults,
validation. It asks nothing of the machine or the runtime.
"""

"""Cgroups of the node, of the QoS classes and of pods: their values, when they exist, and what
happens when they cannot be made."""

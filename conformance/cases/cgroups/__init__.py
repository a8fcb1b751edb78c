"""Cgroups of the node, of the QoS classes and of pods: values, life, and what goes wrong."""

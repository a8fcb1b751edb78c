"""How Go writes and reads values, where the kubelet's texts, files and hashes show it: durations,
numbers, quoted strings, JSON, FNV hashes, names of gRPC codes. It knows nothing of pods.

Modules are named after Go's packages.
"""

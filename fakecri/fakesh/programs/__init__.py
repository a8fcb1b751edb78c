"""The programs that every fake container has, busybox's as far as probes and hooks use them.

`library` has them all by name, `network_programs` those that look at the network.
"""

"""A machine of numbers for a kubelet process: what it reads of its machine is a fake node's.

See docs/given-machine.md. `machine.given_machine` makes it; the other modules are its parts. What
must never happen here: this machine's own numbers, cgroups or log are changed.
"""

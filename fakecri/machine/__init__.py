"""The fake machine: memory, filesystems, CPUs, cgroups, the kernel's log, logind.

What must never happen here: the machine's own numbers and the statistics of the runtime disagree.
"""

"""What a kubelet reads of its machine and does to it: memory, CPUs, filesystems, cgroup files,
kernel logs, mounts, directories, the network. Nothing here decides about a pod. Read `machine`
first, the interface that a fake node can stand in for.
"""

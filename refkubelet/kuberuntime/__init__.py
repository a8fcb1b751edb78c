"""Pods in the runtime: what is there, what should be done about it (`decisions`), and doing it:
sandboxes, images, containers, hooks, kills, garbage collection. Upstream: pkg/kubelet/kuberuntime.
"""

"""Pods in the runtime: reading what is there, deciding what to do about it, and doing it.

Read `manager` first, then `sync`, which carries out one sync of a pod. The folders, from low to
high: `decisions` (pure: what to do), `common` (options and reasons), `images` (pulling, access,
collection), `config` (the messages that make a sandbox or a container). The modules here do what
was decided: sandboxes, starts, hooks, kills, resizes, removals, garbage collection, logs.
Upstream: pkg/kubelet/kuberuntime.
"""

"""The runtime manager: reads pods from the container runtime, decides what to do, and does it.

Read `manager` first, then `sync`, which carries out one sync of a pod. The folders, from low to
high: `decisions` (pure: what to do), `common` (options and reasons), `images` (pulling, access,
collection), `config` (the messages that make a sandbox or a container), `reading` (pods and events
of the runtime), `logs`, `resizing`. The modules here carry out the decisions: sandboxes, starts,
hooks, kills, removals, garbage collection.
Upstream: pkg/kubelet/kuberuntime.
"""

"""The sources of pods, manifests in a directory and the API server, and mirror pods.

Read `config` first: it runs the sources and queues operations for the sync loop, which `merge`
computes. `file_source` (with `manifest_files`, `manifest` and `watch`) delivers static pods,
`api_source` those of the API server. `manager` keeps the desired pods of this node, `mirror` makes
and deletes mirror pods. Upstream: pkg/kubelet/config, pkg/kubelet/pod.
"""

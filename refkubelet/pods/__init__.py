"""Where pods come from: manifests in a directory, and the API server; and mirror pods.

Read `config` first: it runs the sources and queues operations for the sync loop, which `merge`
finds. `file_source` (with `manifest_files`, `manifest` and `watch`) delivers static pods,
`api_source` those of the API server. `manager` keeps the pods this node should run, `mirror` makes
the pods by which the API server shows static ones. Upstream: pkg/kubelet/config, pkg/kubelet/pod.
"""

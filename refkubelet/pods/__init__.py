"""Where pods come from: manifests of a directory and the API server, merged into operations for the
sync loop; and mirror pods, by which the API server sees static ones. Upstream: pkg/kubelet/config.
"""

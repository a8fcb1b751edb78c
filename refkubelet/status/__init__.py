"""The status of a pod, made anew at every sync from what the runtime and the probes say, and its
way to the API server. Upstream: pkg/kubelet/kubelet_pods.go, pkg/kubelet/status.
"""

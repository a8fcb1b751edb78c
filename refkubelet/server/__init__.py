"""What the kubelet serves: HTTP on its ports (`http.py`, read first), and the pod-resources API on
a socket (`pod_resources.py` answers, `pod_resources_server.py` listens). Real time only.
Upstream: pkg/kubelet/server, pkg/kubelet/apis/podresources.
"""

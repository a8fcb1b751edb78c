"""The kubelet's servers: HTTP on its ports (`pages.py` answers, read it first; `http.py` listens),
and the pod-resources API on a socket (`pod_resources.py` answers, `pod_resources_server.py`
listens). They need real time. Upstream: pkg/kubelet/server, pkg/kubelet/apis/podresources.
"""

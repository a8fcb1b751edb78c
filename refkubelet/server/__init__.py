"""The kubelet's servers: HTTP on its ports, and the pod-resources API on a socket.

Read `port` first: the gate, the paths and the handlers of one port; `http` listens, `carrier`
carries requests and answers. The rooms: `common` (what a request and an answer are), `access` (who
asks, and may they), `pages`, `logs`, `streams` (exec and its like), `tls`, `pod_resources`. They
need real time. Upstream: pkg/kubelet/server, pkg/kubelet/apis/podresources.
"""

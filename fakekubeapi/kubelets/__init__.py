"""Requests that the API server passes on: to a kubelet (logs, exec, attach, port-forward, the
node's own pages) and to pods and services (proxy).

`paths` knows such a request by its path, `addresses` finds the kubelet by its Node, `places` and
`log_options` decide where a request goes; `relay` carries answers back, `tunnel` joins connections
that change their protocol. `options` is how the server reaches kubelets and who it is there.
"""

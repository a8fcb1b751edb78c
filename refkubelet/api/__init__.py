"""The API server as the kubelet sees it: its requests, and local copies of objects it follows.

`client` says which requests there are, `lightkube_client` makes them over HTTP (with `kubeconfig`
and `credential_plugin`), `answers` reads what comes back. `reflector` lists and watches objects;
`node_informer` follows this node with it.
"""

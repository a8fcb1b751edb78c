"""Certificates that the kubelet gets from the API server: the one it shows there (client), and the
one of its main port (serving).

Read `deadlines` first: when a certificate is asked for, and how often after a failure. `requests`:
what is asked for, and what became of it. `manager` does both, for ever, with `following`, which
waits for one request; `store` keeps what came in the directory `--cert-dir`; `pem` is all that
knows keys. `bootstrap` is about the kubeconfig of a node that has no certificate yet, `guard` ends
a kubelet that is not let in any more, `metrics` is what is counted.
"""

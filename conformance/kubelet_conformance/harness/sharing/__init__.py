"""Cases that share a kubelet: each is a tenant, with a namespace, a runtime and a view of its
own."""

"""Pods: the defaults that the API fills in, and what is wrong with one. Pure.

Both work on a pod as JSON whose types are right, and in which every amount is one: whoever decodes
a pod says what is wrong with these. A field that is null counts as absent.

Read `validation` first: it calls all checks in the order in which an API server makes them.
`containers` and `volumes` have rooms of their own; `fields` is the rest of a pod, with
`annotations`, `scheduling`, `dns`, `systems`, `pod_security` and `pod_resources`. `common` is what
they share. `defaults` is what the API fills in, `preparation` what an API server changes beside.

What must never happen here: a message, a field or an order that is not the API server's. Clients
match messages, and a kubelet logs the very same ones for a static pod.
Upstream: pkg/apis/core/validation/validation.go; pkg/apis/core/v1/defaults.go.
"""

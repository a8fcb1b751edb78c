"""Pods and values for the rest of the kubelet: API objects, amounts, names, defaults. No I/O.

Read `objects` first (the types), then `pod` (one function for each question about a pod) and
`resources` (requests and limits). `validation` checks static pods, `cgroups` computes the limits of
cgroups, `yaml` parses files.
"""

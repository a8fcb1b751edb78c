"""Pods and values as the rest of the kubelet uses them: API objects, amounts, names, defaults.

It asks nothing of the machine or the runtime. Read `objects` first (the types), then `pod` (one
function for each question about a pod) and `resources` (what a pod asks for). `validation` holds
the checks of static pods, `cgroups` the limits of cgroups, `yaml` reads files.
"""

"""What Kubernetes' API objects are, for all that read, check and write them: the kubelet, the API
server, the suite.

`quantity`, `resource_names`: amounts, and of what; `names`, `addresses`, `selectors`, `metadata`:
the rules that many objects share; `causes`: what is wrong with a field, as a refusal lists it;
`pods`: defaults and validation of pods; `claims`, `csi_sources`: those of volumes; `schema`: the
types of the API; `golang`: how Go writes and reads values; `yaml`: texts in YAML and JSON;
`strict`: files that structs describe. Objects are JSON values: dicts, lists, texts, numbers. Beside
them: `machine`, `topology`: what a machine says of itself; `tunnel`: how a connection is joined
with another; `lazy`: names that a package imports when they are first used.

What must never happen here: an import of another package of the project, or a fact that one of them
has, too.
"""

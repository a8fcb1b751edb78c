"""The checks of an API server at the creation of a pod, for static pods.

Read `pod` first: `pod_problems` calls all others. `pod_fields`, `containers`, `probes_and_hooks`,
`resources`, `volumes` and `references` check these parts; `api_references` refuses API objects in
static pods; `field_errors` makes the texts and checks names.
"""

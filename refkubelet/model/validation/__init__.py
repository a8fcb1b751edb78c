"""The checks that an API server makes when a pod is created, for static pods.

`pod` begins: `pod_problems` calls all others. `pod_fields`, `containers`, `probes_and_hooks`,
`resources`, `volumes` and `references` hold the checks of these parts, `api_references` those of
objects that a static pod may not need; `field_errors` makes the texts and checks names.
"""

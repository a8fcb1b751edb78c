"""A run as pytest sees it: `options` are read, `run` holds the state, `items` are the cases,
`running` lets them run. `kubelet_conformance.pytest_plugin` is what pytest loads, and its hooks."""

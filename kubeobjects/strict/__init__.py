"""The one strict reader of files: a struct says what a file may hold, and all mistakes are told at
once, each with its place.

`values` are a file's values with their places, `reader` makes structs of them, `json_schema` tells
editors the same, `errors` is what is told. Scripts, scenarios, bodies of the control API and the
kubelet's configuration files are read by it.
"""

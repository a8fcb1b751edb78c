"""The configuration of sandboxes and containers, field by field. Read `container` first.

All of it is pure; `kuberuntime.run_options` and `volumes` read and make the files that it names.
What must never happen here: a field is set that upstream leaves empty.
"""

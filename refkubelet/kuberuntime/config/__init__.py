"""The configuration of sandboxes and containers, field by field. Read `container` first.

All of it is decided without effects; what it needs from the disk is read, and the files it names
are made, in `kuberuntime.run_options` and `volumes`. What must never happen here: a call of the
runtime, or a field that the kubelet leaves empty.
"""

"""Small worlds, whole: each is played once undisturbed, to know its calls of the runtime; then once
for every kind of fault at every call, once for a kubelet that is killed at every call, and for
pairs of these.

`whole_world` has such a world, with all of its disturbances by their numbers.
"""

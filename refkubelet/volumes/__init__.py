"""Volumes of pods: emptyDir, hostPath and images; a pod with any other kind of volume never starts.

Read `manager` first: it sets up a pod's volumes before its containers start, and tears them down
after their end. `plan` decides; `empty_dirs`, `host_paths` and `sub_paths` make volumes, with the
tools `mounting` and `removal`.
"""

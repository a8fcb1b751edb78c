"""Volumes of pods: emptyDir, hostPath and images; a volume of any other kind keeps its pod waiting.

Read `manager` first: it sets a pod's volumes up before its containers and takes them down after
them. `plan` decides, `empty_dirs`, `host_paths` and `sub_paths` make, `mounting` and `removal` are
the tools.
"""

"""The pod-resources API, v1: what devices, CPUs and memory containers have (CG-085)."""

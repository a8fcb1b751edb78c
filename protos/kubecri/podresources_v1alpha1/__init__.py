"""The pod-resources API, v1alpha1: what devices containers have (CG-085)."""

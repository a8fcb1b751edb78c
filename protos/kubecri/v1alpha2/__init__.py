"""runtime.v1alpha2, which old clients of containerd up to 1.7 speak (CRI-010)."""

"""What the kernel's OOM killer did, as far as it concerns the whole node (EVIC-124)."""

"""The CPU manager: which containers get CPUs of their own, and which (CG-081)."""

"""The registration API of plug-ins, v1: what a plug-in is, and how its registration went (CG-086)."""

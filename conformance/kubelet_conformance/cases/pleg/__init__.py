"""Relist, pod cache, runtime health and garbage collection (PLEG-, GC-)."""

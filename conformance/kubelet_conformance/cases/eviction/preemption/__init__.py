"""Preemption: which pods are stopped so that a critical one fits (PREE-)."""

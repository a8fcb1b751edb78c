"""Room for critical pods: less important pods end when one does not fit (PREE-001..009)."""

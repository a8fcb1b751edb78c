"""Whether a pod may run on this node (LIFE-221..229): handlers in order, first rejection wins."""

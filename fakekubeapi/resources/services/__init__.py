"""Services: addresses, ports, and what a change of type takes away."""

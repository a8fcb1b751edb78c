"""refkubelet in this process, on the running loop."""

"""The pod-resources API on its socket."""

"""Exec, attach, port-forward: joined with the runtime's streaming server."""

"""The logs of containers. Read `container_logs` first."""

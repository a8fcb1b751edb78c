"""What happens to pods that run: restarts, changes, ephemeral containers, sidecars, logs."""

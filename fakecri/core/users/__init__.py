"""Users of containers: identities, security contexts, user namespaces."""

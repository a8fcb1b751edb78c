"""The end of containers: how they are stopped, and what is removed of dead ones."""

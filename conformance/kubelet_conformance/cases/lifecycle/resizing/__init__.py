"""In-place resize of containers and pods. `common` is what its cases share."""

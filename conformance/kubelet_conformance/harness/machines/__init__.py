"""The machine under a node: a fake one, or the disk and cgroups of the real one that a case has to
itself."""

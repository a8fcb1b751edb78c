"""The machine under a node: a fake one, disks and cgroups of a case's own."""

"""What a case can do with a node, by subject: `node.api`, `node.kubelet`, `node.runtime`,
`node.machine`, `node.cgroups` and `node.plugins`."""

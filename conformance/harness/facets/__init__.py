"""What a case can do with a node, by subject: `node.api`, `node.kubelet`, `node.runtime`,
`host.machine`, `node.cgroups` and `node.plugins`."""

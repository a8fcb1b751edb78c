"""Volumes of CSI drivers (NODE-216 to NODE-219, NODE-222).

A driver is a program beside the kubelet that makes volumes of some storage usable on this node. The
kubelet finds it as a plug-in (`refkubelet.plugin_manager`), tells the cluster of it in CSINode
(`node_info`), and asks it over gRPC to stage a volume once for the node (`staging`), and to publish
it for each pod (`volumes`, read that first). What shall be asked is decided in `mounts` and
`requests`; whether a controller has attached the volume to this node is seen in `attachments`, and
whether one has made it larger in `expansion`, of which `expander` does the node's part. How large
a volume is, its driver tells in `metrics`.
What was asked for is on the disk beside the volumes (`records`), so that another kubelet ends it.
"""

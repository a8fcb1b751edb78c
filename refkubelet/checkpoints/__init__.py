"""Files in which a kubelet keeps what must outlive it: written whole or not at all, with a checksum
where upstream's file of the same name has one, and one error for a file that cannot be used. Read
`state_file` first; `atomic_file` writes; `content` has the checksum and says what can be wrong.
Upstream: pkg/kubelet/checkpointmanager.
"""

"""The harness: runs a case against any kubelet on any runtime, through one `Node`."""

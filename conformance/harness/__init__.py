"""The harness: any kubelet, any runtime, one `Node` for the case."""

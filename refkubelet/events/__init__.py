"""Events, by which a kubelet tells people about pods and the node (texts: LIFE-240..245)."""

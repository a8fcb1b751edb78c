"""Events, by which a kubelet tells people about pods and the node (texts: LIFE-240..245).

`recorder` is what the other rooms use; `queued_recorder` counts events with `correlator`, queues
and sends them."""

"""The kubelet's HTTP ports: who may ask, and what they answer (SRV-)."""

"""Startup, readiness and liveness probes; each probe of each container has a worker.

Read `decide.py` first: all decisions, pure. `worker.py` is the loop of one probe, `prober.py` runs
it, `manager.py` starts and stops the workers. Upstream: pkg/kubelet/prober, pkg/probe.
"""

"""Startup, readiness and liveness probes: a worker for each, deciding purely what a run's outcome
means.

Read `decide.py` first: all decisions. `worker.py` is the loop of one probe, `prober.py` runs it,
`manager.py` starts and stops the workers. Upstream: pkg/kubelet/prober, pkg/probe.
"""

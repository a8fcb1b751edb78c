"""Startup, readiness and liveness probes: a worker for each, deciding purely what a run's outcome
means. Upstream: pkg/kubelet/prober, pkg/probe.
"""

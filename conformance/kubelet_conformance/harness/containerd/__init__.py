"""A real containerd for the suite, started with testcontainers from an image made on the spot.

`docker_host.docker_problem()` says in one line what is missing; `start.start_containerd(workdir)`
gives a ready `ContainerdNode` of one of the `versions.VERSIONS`. By hand: `python -m
kubelet_conformance.harness.containerd`.
"""

"""A Dask cluster of this machine, in processes of its own, until standard input ends: prints the
address of its scheduler and the process IDs of its workers."""

from __future__ import annotations

import json
import sys

if __name__ == "__main__":
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=int(sys.argv[1]),
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
    ) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        print(json.dumps([cluster.scheduler_address, pids]), flush=True)
        sys.stdin.read()

"""Where the worlds of a search are played: in processes of this machine, or of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor  # noqa: TID251  # whole worlds
from contextlib import contextmanager
from multiprocessing import get_context  # noqa: TID251  # likewise

from msgspec import Struct

from kubelet_conformance.cluster.client import cluster_at
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.search.tasks import Asks, begin_worker, require


class Workers(Struct, frozen=True):
    """Who plays worlds."""

    executor: Executor
    count: int
    """How many worlds at a time."""
    look: Callable[[], None] = lambda: None
    """Raises what makes waiting useless."""


@contextmanager
def workers_for(choice: Choice, asks: Asks, dask: str | None) -> Iterator[Workers]:
    """Those that can play worlds on that kubelet, until the block ends. `dask`: the address of
    the scheduler of a cluster; None: as many processes of this machine as the choice has jobs.

    Raises EnvironmentProblem or ClusterProblem when a kubelet does not start there."""
    virtual = choice.virtual and (asks.beside is None or asks.beside.virtual)
    begin = None if virtual else begin_worker
    if dask is not None:
        with cluster_at(dask, begin) as cluster:
            cluster.try_each(require, choice, asks)
            yield Workers(cluster, cluster.count, cluster.look)
        return
    require(choice, asks)
    context = get_context("fork")
    with ProcessPoolExecutor(choice.jobs, mp_context=context, initializer=begin) as executor:
        yield Workers(executor, choice.jobs)

"""Hands work to the workers of a Dask cluster: an executor, like one of local processes.

What a client and workers exchange is plain data. A task of a worker that ends is done anew by
another one: Dask sees to that, and its future completes once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future  # noqa: TID251  # whole cases run elsewhere
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kubelet_conformance.cluster.likeness import own_package
from kubelet_conformance.cluster.worker import Begin, ClusterProblem, TaskLost, do_here, leave
from simclock import Clock, RealClock
from simclock.distribution import not_installed

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
EXTRA: Final = "cluster"
ANSWER_S: Final = 10.0
"""So long a scheduler may take to answer."""
WITHOUT_WORKERS_S: Final = 60.0
"""So long a cluster may be without workers: one that is started anew comes within that."""
INSTALL: Final = f"install 'refkubelet[{EXTRA}]' there"


class Cluster(Executor):
    """The workers of a cluster. `begin`: what each of their processes does before all."""

    def __init__(
        self, client: Client, address: str, begin: Begin | None, clock: Clock | None = None
    ) -> None:
        self._client = client
        self._address = address
        self._begin = begin
        self._clock = clock or RealClock()
        self._empty_since_s: float | None = None

    @property
    def count(self) -> int:
        """How many tasks the workers do at a time."""
        return sum(self._threads().values())

    def require(self, within_s: float = ANSWER_S) -> None:
        """Raise ClusterProblem when there is no worker within that time."""
        try:
            self._client.wait_for_workers(1, timeout=within_s)
        except TimeoutError:
            raise ClusterProblem(f"--dask {self._address}: it has no worker") from None

    def try_each(self, function: Callable[..., object], *arguments: Any) -> None:
        """Do that at every worker. Raises ClusterProblem where it cannot be done."""
        workers = list(self._threads())
        tried = [self._submit([worker], function, *arguments) for worker in workers]
        for worker, future in zip(workers, tried, strict=True):
            try:
                future.result()
            except (RuntimeError, TaskLost) as problem:
                last = str(problem).strip().splitlines()[-1]
                raise ClusterProblem(f"--dask {self._address}: worker {worker}: {last}") from None

    def submit(self, fn: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """Have a worker do that. The future raises what `worker.do` does."""
        assert not named
        return self._submit(None, fn, *arguments)

    def _submit(self, workers: list[str] | None, *work: Any) -> Future[Any]:
        asked = self._client.submit(
            do_here, own_package(), self._begin, *work, pure=False, workers=workers
        )
        told: Future[Any] = Future()

        def ended(_: object) -> None:
            if not told.set_running_or_notify_cancel():
                return
            try:
                told.set_result(asked.result())
            except BaseException as problem:  # also what says that it was cancelled
                told.set_exception(self._meant(problem))

        asked.add_done_callback(ended)
        return told

    def _meant(self, problem: BaseException) -> BaseException:
        """What a problem of a future says."""
        from distributed import KilledWorker  # the extra's

        if isinstance(problem, ClusterProblem):
            return ClusterProblem(f"--dask {self._address}: {problem}")
        if isinstance(problem, KilledWorker):
            return TaskLost("the workers that did it have ended, one after the other")
        if isinstance(problem, TaskLost | RuntimeError):
            return problem
        if isinstance(problem, ModuleNotFoundError | AttributeError):
            return ClusterProblem(f"--dask {self._address}: a worker has {_lacks(problem)}")
        return self._gone(problem)

    def _gone(self, problem: BaseException) -> ClusterProblem:
        return ClusterProblem(
            f"--dask {self._address}: it answers no more ({_first_line(problem)})"
        )

    def look(self) -> None:
        """Raise ClusterProblem when no result is to be expected: there is no scheduler, or for too
        long no worker."""
        now_s = self._clock.monotonic_s()
        if self._threads():
            self._empty_since_s = None
        elif self._empty_since_s is None:
            self._empty_since_s = now_s
        elif now_s - self._empty_since_s >= WITHOUT_WORKERS_S:
            raise ClusterProblem(
                f"--dask {self._address}: it has had no worker for {WITHOUT_WORKERS_S:g} s"
            )

    def _threads(self) -> dict[str, int]:
        """The workers, and how many threads each has. Raises ClusterProblem."""
        try:
            threads: dict[str, int] = self._client.nthreads()
        except Exception as problem:
            raise self._gone(problem) from None
        return threads

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster: what nobody has begun is not done any more."""
        if self._client.status == "running":
            with suppress(Exception):
                self._client.run(leave, on_error="ignore")


def _lacks(problem: Exception) -> str:
    return f"no such package, or another one ({problem}): {INSTALL}"


def _first_line(problem: BaseException) -> str:
    if isinstance(problem, TimeoutError):
        return f"within {ANSWER_S:g} s"
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


async def _shake_hands(address: str) -> None:
    """Raise OSError or ValueError when no scheduler answers there. A client of Dask would wait for
    ever where somebody listens who says nothing."""
    from distributed.comm.core import connect
    from distributed.security import Security

    async with asyncio.timeout(ANSWER_S):
        keys = Security().get_connection_args("client")
        comm = await connect(address, timeout=ANSWER_S, **keys)
    comm.abort()


@contextmanager
def cluster_at(address: str, begin: Begin | None = None) -> Iterator[Cluster]:
    """The workers of the cluster whose scheduler has that address, until the block ends. Raises
    ClusterProblem when nobody answers there, or there are no workers."""
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise ClusterProblem(f"--dask: {not_installed(error, EXTRA)}") from None
    for logger in ("distributed", "distributed.client"):  # we say it ourselves
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        asyncio.run(_shake_hands(address))
        client = Client(address, timeout=ANSWER_S, set_as_default=False)
    except (OSError, ValueError) as problem:
        text = f"--dask {address}: no scheduler answers there ({_first_line(problem)})"
        raise ClusterProblem(text) from None
    try:
        cluster = Cluster(client, address, begin)
        cluster.require()
        with cluster:
            yield cluster
    finally:
        with suppress(Exception):
            client.close()

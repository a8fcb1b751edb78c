"""Random operations on two API servers at once; every answer is compared.

On the fake alone (always): two of it, to hold that the machine is right. On a kube-apiserver
(REFKUBELET_APISERVER names its URL): the fake against it. REFKUBELET_OPERATIONS is the number of
operations, REFKUBELET_SEED the seed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import api_differences
import pytest
from api_pair import ApiPair, Server
from api_pods import Subresources
from api_reads import Reads
from api_results import ApiResults
from api_sides import TOKEN, URL, fake_server, session
from api_writes import Writes
from hypothesis.stateful import initialize
from machine_runs import drive, first_seed, operations

from kubeobjects.schema.messages import DEFAULT_MINOR


class TwoServers(Writes, Reads, Subresources):
    """Operations over a few names, so that collisions, repeats and wrong states are common."""

    @initialize()
    def begin(self) -> None:
        self.remember_versions()
        self.create_plain("pods", "x")
        self.create_plain("configmaps", "x")


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


async def server_of_fake(
    stack: AsyncExitStack, label: str, kubernetes: str = DEFAULT_MINOR
) -> Server:
    url = await stack.enter_async_context(fake_server(kubernetes))
    return Server(label, await stack.enter_async_context(session(url)))


def machine(pair: ApiPair, runner: asyncio.Runner) -> Any:
    return type("Bound", (TwoServers,), {"pair": pair, "runner": runner})


def test_two_fakes_answer_alike(runner: asyncio.Runner) -> None:
    """The machine itself is sound: the same server twice shows no difference."""
    stack = AsyncExitStack()
    try:
        one = runner.run(server_of_fake(stack, "one"))
        other = runner.run(server_of_fake(stack, "other"))
        pair = ApiPair(one, other)
        drive(machine(pair, runner), pair, operations(300))
    finally:
        runner.run(stack.aclose())


@pytest.mark.real
@pytest.mark.timeout(1800)
def test_the_fake_answers_like_kube_apiserver(
    runner: asyncio.Runner, api_results: ApiResults
) -> None:
    if not URL:
        pytest.skip("REFKUBELET_APISERVER names no server")
    stack = AsyncExitStack()
    try:
        side = runner.run(stack.enter_async_context(session(URL, TOKEN)))
        version = runner.run(side.done("GET", "/version"))
        minor = f"{version['major']}.{version['minor']}"
        fake = runner.run(server_of_fake(stack, "fakekubeapi", minor))
        pair = ApiPair(
            Server("kube-apiserver", side),
            fake,
            minor=minor,
            collect="REFKUBELET_COLLECT" in os.environ,
        )
        api_results.version = version["gitVersion"]
        try:
            drive(machine(pair, runner), pair, operations(2000))
        finally:
            api_results.operations, api_results.seed = pair.operations, first_seed()
            api_results.mismatch, api_results.used = pair.mismatch, pair.used
        print(f"\n{pair.operations} operations from seed {first_seed()}; rows used:")
        for row, times in pair.used.items():
            print(f"  {times:5} x {row}")
        if pair.collect:
            for (what, path), seen in sorted(pair.found.items()):
                print(f"\n=== {what}: {path} ({len(seen)} times)\n" + "\n".join(seen[:3]))
    finally:
        runner.run(stack.aclose())


def test_every_difference_has_a_reason() -> None:
    rows: tuple[Any, ...] = (
        *api_differences.FIELDS,
        *api_differences.TEXTS,
        *api_differences.CODES,
    )
    assert all(len(row.reason) > 10 for row in rows)
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize(
    ("before", "minor", "applies"),
    [
        ("", "1.36", True),
        ("1.36", "1.34", True),
        ("1.36", "1.9", True),
        ("1.36", "1.36", False),
        ("1.36", "1.100", False),
        ("1.36", "", False),
    ],
)
def test_a_difference_of_older_minors_is_none_of_newer_ones(
    before: str, minor: str, applies: bool
) -> None:
    row = api_differences.TextRow("*", "*", "a reason", before)
    assert api_differences.applies(row, minor) is applies

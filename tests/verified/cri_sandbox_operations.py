"""Random operations on sandboxes."""

from __future__ import annotations

from typing import Any

from cri_operations import Operations, attempts, of_sandbox, pods, request, which
from cri_played import pod_of
from hypothesis import strategies as st
from hypothesis.stateful import rule
from kubecri.v1 import api_pb2 as cri
from pairs import Side


class SandboxOperations(Operations):
    """Every call about a sandbox, also two at once, and with requests that are wrong."""

    @rule(name=pods, attempt=attempts)
    def run_sandbox(self, name: str, attempt: int) -> None:
        self._run(name, attempt, race=False)

    @rule(name=pods)
    def two_clients_run_a_sandbox(self, name: str) -> None:
        self._run(name, 2, race=True)

    def _run(self, name: str, attempt: int, *, race: bool) -> None:
        symbol = f"s{self.pair.operations}"

        def build(side: Side) -> cri.RunPodSandboxRequest:
            return cri.RunPodSandboxRequest(config=pod_of(side, name, attempt))

        if self.make(symbol, "RunPodSandbox", build, race=race):
            self.sandboxes.append(symbol)
            self.pod_of[symbol] = (name, attempt)

    @rule()
    def run_without_metadata(self) -> None:
        self.do("RunPodSandbox", request("RunPodSandbox"))

    @rule(name=pods)
    def run_with_an_unknown_handler(self, name: str) -> None:
        self.do(
            "RunPodSandbox",
            lambda side: cri.RunPodSandboxRequest(
                config=pod_of(side, name, 7), runtime_handler="nope"
            ),
        )

    @rule(number=which)
    def stop_sandbox(self, number: int) -> None:
        self.about_sandbox("StopPodSandbox", number)

    @rule(number=which)
    def remove_sandbox(self, number: int) -> None:
        self.about_sandbox("RemovePodSandbox", number)

    @rule(number=which)
    def two_clients_stop_a_sandbox(self, number: int) -> None:
        build = of_sandbox("StopPodSandbox", self.sandbox(number))
        self.race_and_again("StopPodSandbox", build)

    @rule(number=st.integers(0, 59))
    def two_clients_remove_a_sandbox(self, number: int) -> None:
        if number < 20:  # else too little would live long
            build = of_sandbox("RemovePodSandbox", self.sandbox(number))
            self.race_and_again("RemovePodSandbox", build)

    @rule(number=which)
    def sandbox_status(self, number: int) -> None:
        self.about_sandbox("PodSandboxStatus", number)

    @rule(number=which, state=st.sampled_from([None, 0, 1, 9]), label=st.none() | pods)
    def list_sandboxes(self, number: int, state: Any, label: str | None) -> None:
        symbol = self.sandbox(number) if number % 3 == 0 else ""

        def build(side: Side) -> cri.ListPodSandboxRequest:
            wanted = cri.PodSandboxFilter(id=side.id(symbol))
            if state is not None:
                wanted.state.state = state
            if label:
                wanted.label_selector["pod"] = label
            return cri.ListPodSandboxRequest(filter=wanted)

        self.do("ListPodSandbox", build)

    @rule(number=which)
    def sandbox_stats(self, number: int) -> None:
        self.about_sandbox("PodSandboxStats", number)

    @rule(number=which)
    def list_sandbox_stats(self, number: int) -> None:
        symbol = self.sandbox(number) if number % 2 else ""
        self.do(
            "ListPodSandboxStats",
            lambda side: cri.ListPodSandboxStatsRequest(
                filter=cri.PodSandboxStatsFilter(id=side.id(symbol))
            ),
        )

    @rule(number=which)
    def update_sandbox_resources(self, number: int) -> None:
        self.about_sandbox("UpdatePodSandboxResources", number)

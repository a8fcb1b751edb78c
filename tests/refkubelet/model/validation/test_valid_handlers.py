"""What is complained about in probes and hooks (SRC-037, PROBE-003, PROBE-061)."""

from __future__ import annotations

from typing import Any

import pytest
from manifest_reading import container_problems, problems

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
EXEC: dict[str, Any] = {"exec": {"command": ["a"]}}
HEADER = "a valid HTTP header must consist of alphanumeric characters or '-'"


def in_spec(spec: dict[str, Any], **fields: Any) -> list[str]:
    """The problems of a container in a pod with more fields."""
    found = problems({"containers": [{"name": "c", "image": "x:1", **fields}], **spec})
    return [problem.removeprefix("spec.containers[0].") for problem in found]


@pytest.mark.parametrize("kind", PROBES)
def test_numbers_of_probes_PROBE_003(kind: str) -> None:
    names = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold")
    assert container_problems(**{kind: {**EXEC, **dict.fromkeys(names, 0)}}) == []
    for name in names:
        assert container_problems(**{kind: {**EXEC, name: -1}}) == [
            f"{kind}.{name}: Invalid value: -1: must be greater than or equal to 0"
        ]


@pytest.mark.parametrize("kind", PROBES)
def test_successes_of_probes_PROBE_003(kind: str) -> None:
    for count in (0, 1):
        assert container_problems(**{kind: {**EXEC, "successThreshold": count}}) == []
    one = [f"{kind}.successThreshold: Invalid value: 2: must be 1"]
    assert container_problems(**{kind: {**EXEC, "successThreshold": 2}}) == (
        [] if kind == "readinessProbe" else one
    )


@pytest.mark.parametrize("kind", PROBES)
def test_grace_periods_of_probes_PROBE_003(kind: str) -> None:
    field = f"{kind}.terminationGracePeriodSeconds"
    ready = [f"{field}: Forbidden: must not be set for readinessProbes"]
    least = [f"{field}: Invalid value: 0: must be greater than or equal to 1"]
    for grace, wanted in ((0, least), (1, [])):
        probe = {**EXEC, "terminationGracePeriodSeconds": grace}
        assert container_problems(**{kind: probe}) == (
            ready if kind == "readinessProbe" else wanted
        )


@pytest.mark.parametrize(
    ("place", "kinds"),
    [
        *((kind, "exec, httpGet, tcpSocket, grpc") for kind in PROBES),
        *(
            (f"lifecycle.{name}", "exec, httpGet, tcpSocket, sleep")
            for name in ("postStart", "preStop")
        ),
    ],
)
def test_what_handlers_do_SRC_037(place: str, kinds: str) -> None:
    def found(**handler: Any) -> list[str]:
        kind, _, hook = place.partition(".")
        return container_problems(**{kind: {hook: handler} if hook else handler})

    assert found() == [f"{place}: Required value: must specify a handler type: {kinds}"]
    assert found(exec={}) == [f"{place}.exec.command: Required value"]
    assert found(**EXEC, tcpSocket={"port": 1}) == [
        f"{place}.tcpSocket: Forbidden: may not specify more than 1 handler type"
    ]
    for scheme in ("HTTP", "HTTPS"):
        assert found(httpGet={"port": 65535, "scheme": scheme}) == []
    assert found(httpGet={"port": 1, "scheme": "FTP"}) == [
        f'{place}.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"'
    ]
    assert found(
        httpGet={
            "port": 1,
            "httpHeaders": [{"name": "X-1", "value": ""}, {"name": "X 1", "value": ""}],
        }
    ) == [f'{place}.httpGet.httpHeaders: Invalid value: "X 1": {HEADER}']
    range_of_ports = "must be between 1 and 65535, inclusive"
    for kind in ("httpGet", "tcpSocket"):
        assert found(**{kind: {"port": "web"}}) == []
        assert found(**{kind: {"port": "80"}}) == [
            f'{place}.{kind}.port: Invalid value: "80": must contain at least one letter (a-z)'
        ]
        for port in (0, 65536):
            assert found(**{kind: {"port": port}}) == [
                f"{place}.{kind}.port: Invalid value: {port}: {range_of_ports}"
            ]


def test_ports_of_grpc_probes_SRC_037() -> None:
    assert container_problems(livenessProbe={"grpc": {"port": 1}}) == []
    assert container_problems(livenessProbe={"grpc": {"port": 65536}}) == [
        "livenessProbe.grpc.port: Invalid value: 65536: must be between 1 and 65535, inclusive"
    ]


@pytest.mark.parametrize("name", ["postStart", "preStop"])
def test_hooks_sleep_within_the_grace_period_SRC_037(name: str) -> None:
    def found(seconds: int, grace: int | None) -> list[str]:
        hooks = {name: {"sleep": {"seconds": seconds}}}
        return in_spec({"terminationGracePeriodSeconds": grace}, lifecycle=hooks)

    why = "must be non-negative and less than terminationGracePeriodSeconds"
    field = f"lifecycle.{name}.sleep"
    assert found(0, None) == found(0, 5) == found(5, 5) == []
    assert found(6, 5) == [f"{field}: Invalid value: 6: {why} (5)"]
    assert found(-1, 5) == [f"{field}: Invalid value: -1: {why} (5)"]
    assert found(1, None) == [f"{field}: Invalid value: 1: {why} (0)"]


def test_a_stop_signal_needs_an_operating_system_SRC_037() -> None:
    hooks = {"stopSignal": "SIGTERM"}
    why = "lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`"
    assert in_spec({}, lifecycle=hooks) == [why]
    assert in_spec({"os": {"name": "linux"}}, lifecycle=hooks) == []


def test_only_sidecars_have_probes_and_hooks_before_the_others_SRC_037() -> None:
    def found(**fields: Any) -> list[str]:
        init = {"name": "i", "image": "x:1", **fields}
        spec = {"containers": [{"name": "c", "image": "x:1"}], "initContainers": [init]}
        return [problem.removeprefix("spec.initContainers[0].") for problem in problems(spec)]

    handlers = {**{name: {} for name in PROBES}, "lifecycle": {"preStop": {}}}
    why = "may not be set for init containers without restartPolicy=Always"
    refused = [f"{name}: Forbidden: {why}" for name in (*PROBES, "lifecycle")]
    assert found() == found(restartPolicy="Always") == []
    assert found(**handlers) == found(restartPolicy="OnFailure", **handlers) == refused
    one = "Required value: must specify a handler type: exec, httpGet, tcpSocket"
    assert found(restartPolicy="Always", **handlers) == [
        *(f"{name}: {one}, grpc" for name in PROBES),
        f"lifecycle.preStop: {one}, sleep",
    ]

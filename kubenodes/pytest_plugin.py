"""The pytest plugin: `kube_node`, a node for a test, and `kube_nodes`, as many as it wants.

They are at the API server of `kube_api`: a fake one for each test, envtest's for the whole run, or
one that a kubeconfig names; the option `kube_api` of pytest's configuration, or `--kube-api`, says
which. Nodes live in a background thread, so that a test may block as it likes; in an async test
that is marked `virtual_time` they live on its loop and jump with its time, at a `FakeApi` without a
socket. After the test nothing of them is left at the API server. Nothing heavy is imported before a
test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # without pytest-asyncio there are no tests in virtual time
    async_fixture = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from fakekubeapi import FakeApi
    from kubenodes import ApiServer, KubeNode, NodeSettings, ServedNode
    from simclock.loop_thread import LoopThread

FAKE: Final = "fake"
ENVTEST: Final = "envtest"
_OPTION: Final = "kube_api"


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "where the nodes of kube_node are: fake, envtest, or the path of a kubeconfig"
    parser.addini(_OPTION, text, "string", default=FAKE)
    parser.addoption("--kube-api", default=None, metavar="WHERE", help=text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "kube_node(**settings): what the fixtures kube_node and kube_nodes make nodes of"
    )


@pytest.fixture(scope="session")
def kube_thread() -> Iterator[LoopThread]:
    """The event loop, in a thread of its own, on which the nodes of tests live."""
    import asyncio

    from simclock.loop_thread import LoopThread

    _require_kubelet()
    thread = LoopThread(asyncio.new_event_loop(), ended="the nodes of this run have ended")
    yield thread
    thread.stop()


@pytest.fixture(scope="session")
def kube_session_api(
    request: pytest.FixtureRequest, kube_thread: LoopThread
) -> Iterator[ApiServer | None]:
    """The API server of the whole run; None: each test has a fake one."""
    place = request.config.getoption("--kube-api") or request.config.getini(_OPTION)
    if place == FAKE:
        yield None
        return
    from kubenodes.api_servers import server_of
    from kubenodes.envtest import EnvtestError, control_plane
    from refkubelet.config import ConfigError

    with ExitStack() as stack:
        try:
            path = stack.enter_context(control_plane()) if place == ENVTEST else Path(place)
            server = stack.enter_context(server_of(kube_thread, path))
        except (ConfigError, EnvtestError) as error:
            message = str(error)
        else:
            yield server
            return
    pytest.fail(f"kube_api: {message}", pytrace=False)


@pytest.fixture
def kube_api(request: pytest.FixtureRequest) -> ApiServer | FakeApi:
    """The API server: its `kubeconfig`, and `fake`, if it is the fake one. In virtual time the
    `FakeApi` itself."""
    virtual = _is_virtual(request)
    name = "kube_api_in_virtual_time" if virtual else "kube_api_in_real_time"
    server: ApiServer | FakeApi = request.getfixturevalue(name)
    return server


@pytest.fixture
def kube_api_in_real_time(
    kube_thread: LoopThread, kube_session_api: ApiServer | None, tmp_path: Path
) -> Iterator[ApiServer]:
    """That of the run, or a fake one of this test."""
    if kube_session_api is not None:
        yield kube_session_api
        return
    from kubenodes.api_servers import fake_server

    with fake_server(kube_thread, tmp_path) as server:
        yield server


@pytest.fixture
def kube_api_in_virtual_time() -> FakeApi:
    """A fake API server on the loop of this test."""
    _require_kubelet()
    from fakekubeapi import FakeApi

    return FakeApi()


@pytest.fixture
def kube_node(request: pytest.FixtureRequest) -> ServedNode | KubeNode:
    """A node that is ready: a `ServedNode`, whose methods block, or in virtual time a `KubeNode`,
    whose methods are awaited. The marker `kube_node(cpus=2, labels={...})` says what it is made
    with (`NodeSettings`)."""
    virtual = _is_virtual(request)
    name = "kube_node_in_virtual_time" if virtual else "kube_node_in_real_time"
    node: ServedNode | KubeNode = request.getfixturevalue(name)
    return node


@pytest.fixture
def kube_nodes(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes nodes: `kube_nodes(3, cpus=2)` is a list of three that are ready, with these settings
    over those of the marker; in virtual time `await kube_nodes(3)`."""
    virtual = _is_virtual(request)
    name = "kube_nodes_in_virtual_time" if virtual else "kube_nodes_in_real_time"
    make: Callable[..., Any] = request.getfixturevalue(name)
    return make


@pytest.fixture
def kube_node_in_real_time(kube_nodes_in_real_time: Callable[..., Any]) -> ServedNode:
    """What `kube_node` is outside of virtual time."""
    node: ServedNode = kube_nodes_in_real_time(1)[0]
    return node


@pytest.fixture
def kube_nodes_in_real_time(
    request: pytest.FixtureRequest,
    kube_thread: LoopThread,
    kube_api_in_real_time: ApiServer,
    tmp_path: Path,
) -> Iterator[Callable[..., list[ServedNode]]]:
    """What `kube_nodes` is outside of virtual time."""
    from kubenodes.served import serve_nodes

    server = kube_api_in_real_time
    with ExitStack() as stack:

        def make(count: int, **settings: Any) -> list[ServedNode]:
            __tracebackhide__ = True
            every = _settings(request, count, settings)
            with _told():
                nodes = serve_nodes(
                    kube_thread,
                    every,
                    server.client,
                    kubeconfig=server.kubeconfig,
                    directory=tmp_path / "nodes",
                )
                return stack.enter_context(nodes)

        yield make


if async_fixture is not None:

    @async_fixture
    async def kube_node_in_virtual_time(kube_nodes_in_virtual_time: Callable[..., Any]) -> KubeNode:
        """What `kube_node` is in virtual time."""
        nodes = await kube_nodes_in_virtual_time(1)
        node: KubeNode = nodes[0]
        return node

    @async_fixture
    async def kube_nodes_in_virtual_time(
        request: pytest.FixtureRequest, kube_api_in_virtual_time: FakeApi, tmp_path: Path
    ) -> AsyncIterator[Callable[..., Any]]:
        """What `kube_nodes` is in virtual time."""
        from kubenodes.pool import NodePool
        from kubenodes.wire import client_of

        async with AsyncExitStack() as stack:

            async def make(count: int, **settings: Any) -> list[KubeNode]:
                every = _settings(request, count, settings)
                client = client_of(kube_api_in_virtual_time)
                with _told():
                    pool = NodePool(every, client, tmp_path / "nodes")
                    await stack.enter_async_context(pool)
                return list(pool)

            yield make


def _require_kubelet() -> None:
    """Fail the test in one sentence where the libraries of refkubelet are not installed."""
    try:
        import refkubelet.kubelet
    except ModuleNotFoundError as error:
        from simclock.distribution import not_installed

        message = not_installed(error, "nodes")
    else:
        assert refkubelet.kubelet
        return
    pytest.fail(f"kube_node: {message}", pytrace=False)


@contextmanager
def _told() -> Iterator[None]:
    """Fail the test in one sentence for nodes that cannot be, or do not get ready."""
    __tracebackhide__ = True
    from kubenodes.node import NodeError
    from refkubelet.api.client import ApiError
    from refkubelet.config import ConfigError
    from refkubelet.container_manager.cgroups.manager import ContainerManagerError

    try:
        yield
        return
    except (ApiError, ConfigError, ContainerManagerError, NodeError, ValueError) as error:
        message = str(error)
    pytest.fail(f"kube_nodes: {message}", pytrace=False)


def _settings(
    request: pytest.FixtureRequest, count: int, given: dict[str, Any]
) -> list[NodeSettings]:
    """The settings of so many nodes: those of the markers, the nearest last, and `given` over
    them. A name that is not given is one that no other test has; several nodes of one name are
    numbered."""
    from kubenodes.settings import NodeSettings

    settings: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("kube_node"))):
        if marker.args:
            pytest.fail("the marker kube_node takes settings by name: cpus=2", pytrace=False)
        settings |= marker.kwargs
    settings |= given
    name = settings.pop("name", None) or f"kube-node-{_unused(request)}"
    names = [name] if count == 1 else [f"{name}-{number}" for number in range(count)]
    try:
        return [NodeSettings(name=one, **settings) for one in names]
    except (TypeError, ValueError) as error:
        message = str(error)
    pytest.fail(f"kube_node: {message}", pytrace=False)


def _unused(request: pytest.FixtureRequest) -> str:
    """A part of a name; the same in every run where time is virtual and the API server of this test
    alone."""
    from simclock import Ids, Rng

    if not _is_virtual(request):
        return Ids(Rng.from_system()).hex(8)
    numbers: list[int] = request.node.stash.setdefault(_NUMBERS, [])
    numbers.append(len(numbers))
    return str(numbers[-1])


_NUMBERS: Final = pytest.StashKey[list[int]]()


def _is_virtual(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("virtual_time") is not None

"""The pytest plugin: fixtures for other projects' tests, and a report of rules that were never hit.

`fakecri` is called directly, `fakecri_socket` is its endpoint (needs pytest-asyncio), and
`fakecri_server` is a fake on a socket for tests without an event loop. The fixture
`fakecri_options` and the marker `fakecri` say what they are made with; the marker `virtual_time`
runs an async test on a `VirtualLoop`, whose time `time.time()`, `datetime.now()` and
`time.monotonic()` show, too (with `fakecri_python_clocks = false` they do not). A rule that never
decided anything usually means a test that does not test what it says: the end of the run lists
them. With `fakecri_strict = true` in the pytest configuration they are errors. Nothing heavy is
imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

import fakecri as public

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # without pytest-asyncio the socket fixture cannot exist
    async_fixture = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from simclock.python_clocks import LoopsClock

_SECTION: Final = "fakecri"
_PYTHON_CLOCKS: Final = "fakecri_python_clocks"
_CLOCK_OF_SERVER: Final = (
    "fakecri: clock: real and manual are for fakecri_server; the fixture fakecri follows the clock "
    "of the test's loop (mark the test virtual_time), or takes a simclock.Clock"
)
M = TypeVar("M")
_TITLE: Final = f"Captured {_SECTION} teardown"  # what pytest makes of the name


@pytest.fixture
def fakecri_options() -> dict[str, Any]:
    """What `fakecri` and `fakecri_server` are made with: arguments of `FakeCRI` and `serve` (clock,
    script, node, images, runtime_name, cgroup_driver, ...). None here; define a fixture of this
    name to have some. Those of a marker `@pytest.mark.fakecri(images=[...])` count before these."""
    return {}


@pytest.fixture
def fakecri(
    request: pytest.FixtureRequest, fakecri_options: dict[str, Any]
) -> Iterator[public.FakeCRI]:
    """A fresh fake runtime, called directly: `await fakecri.call("RunPodSandbox", request)`, or
    through gRPC stubs on `fakecri.channel()`."""
    options = _options(fakecri_options) | _marked(request)
    if isinstance(options.get("clock"), str):
        pytest.fail(_CLOCK_OF_SERVER, pytrace=False)
    cri = _made(public.FakeCRI, options)
    yield cri
    _report_unused(request, cri)


@pytest.fixture
def fakecri_server(
    request: pytest.FixtureRequest, fakecri_options: dict[str, Any]
) -> Iterator[public.ServedFake]:
    """A fresh fake runtime on a socket, in a background thread; see `fakecri.serve`."""
    with ExitStack() as stack:
        options = _options(fakecri_options) | _marked(request)
        fake = _made(lambda **given: stack.enter_context(public.serve(**given)), options)
        yield fake
        _report_unused(request, fake)


@pytest.fixture(scope="session")
def fakecri_session_options() -> dict[str, Any]:
    """As `fakecri_options`, for `fakecri_session_server`."""
    return {}


@pytest.fixture(scope="session")
def fakecri_session_server(
    fakecri_session_options: dict[str, Any],
) -> Iterator[public.ServedFake]:
    """One fake on one socket for the whole run, for clients that are slow to start. Call its
    `reset()` between tests, or use `fakecri_shared_server`."""
    with ExitStack() as stack:
        yield _made(
            lambda **given: stack.enter_context(public.serve(**given)),
            _options(fakecri_session_options),
        )


@pytest.fixture
def fakecri_shared_server(
    request: pytest.FixtureRequest, fakecri_session_server: public.ServedFake
) -> Iterator[public.ServedFake]:
    """The fake of the whole run, as new for this test: it was reset."""
    fakecri_session_server.reset()
    yield fakecri_session_server
    _report_unused(request, fakecri_session_server)


def _marked(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of the test's markers; the nearest one counts."""
    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("fakecri"))):
        if marker.args:
            pytest.fail("the marker fakecri takes options by name: images=[...]", pytrace=False)
        options |= marker.kwargs
    if (node := options.get("node")) is not None:
        if not isinstance(node, public.FakeNode):
            pytest.fail(f"fakecri: node: wanted a FakeNode, got {node!r}", pytrace=False)
        # A marker is made once, at the import, perhaps for many tests.
        options["node"] = node.as_given()
    return options


def _options(given: object) -> dict[str, Any]:
    """What a fixture of options has given."""
    if not isinstance(given, Mapping):
        pytest.fail(f"fakecri: options: wanted a dict, got {given!r}", pytrace=False)
    return dict(given)


def _made(make: Callable[..., M], options: dict[str, Any]) -> M:
    """What `make` makes of these options; a wrong one fails the test in one sentence."""
    try:
        return make(**options)
    except (TypeError, ValueError) as error:
        message = str(error)
    pytest.fail(f"fakecri: {message}", pytrace=False)  # here, or pytest tells of both errors


if async_fixture is not None:

    @async_fixture
    async def fakecri_socket(fakecri: public.FakeCRI, tmp_path: Path) -> AsyncIterator[str]:
        """The endpoint (`unix:///...`) on which the `fakecri` of this test is served."""
        from fakecri.server import serve

        async with serve(fakecri, f"unix://{tmp_path}/cri.sock") as server:
            yield server.endpoint


class _VirtualTime:
    """Gives a test a `VirtualLoop`; registered only while pytest-asyncio asks for a marked test,
    so that all others keep the loop that their project chose."""

    @staticmethod
    def pytest_asyncio_loop_factories() -> dict[str, Any]:
        return {"virtual": _loops_clock().factory}


@cache
def _loops_clock() -> LoopsClock:
    from simclock.python_clocks import LoopsClock

    return LoopsClock()


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """`@pytest.mark.virtual_time` makes an `async def` test and its async fixtures run in virtual
    time."""
    if not _in_virtual_time(metafunc.definition):
        if any(mark.name == "virtual_time" for mark in metafunc.definition.own_markers):
            raise pytest.UsageError(
                f"{metafunc.definition.nodeid}: the marker virtual_time is for `async def` tests; "
                "in others call simclock.run_virtual, or show a client the time of a blocking "
                "channel: `with simclock.python_clocks(channel.clock):`"
            )
        return (yield)
    if not hasattr(metafunc.config.hook, "pytest_asyncio_loop_factories"):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the marker virtual_time needs pytest-asyncio 1.4 or "
            "newer; install it, or call simclock.run_virtual in a test without async"
        )
    if metafunc.config.getini(_PYTHON_CLOCKS) and find_spec("time_machine") is None:
        from simclock.python_clocks import WANTED

        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the marker virtual_time needs {WANTED}. If "
            f"nothing reads them, set {_PYTHON_CLOCKS} = false in the pytest configuration"
        )
    plugins = metafunc.config.pluginmanager
    plugins.register(_VirtualTime, "fakecri virtual time")
    try:
        return (yield)
    finally:
        plugins.unregister(_VirtualTime)


@pytest.hookimpl(wrapper=True, trylast=True)  # what others do around a test is in real time
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Python's clocks show the virtual time from a marked test's first fixture to its last."""
    if not (_in_virtual_time(item) and item.config.getini(_PYTHON_CLOCKS)):
        return (yield)
    from simclock import python_clocks

    clock = _loops_clock()
    clock.begin()
    with python_clocks(clock):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)  # pytest-asyncio looks at the tests after this
def pytest_pycollect_makeitem() -> Iterator[Any]:
    """Tests in virtual time are tests of pytest-asyncio, also in its strict mode."""
    collected = yield
    items: list[Any] = collected if isinstance(collected, list) else []
    for item in items:
        _in_virtual_time(item)
    return collected


def _in_virtual_time(item: Any) -> bool:
    """Whether an async test is marked so; then it has pytest-asyncio's marker, too. Others that a
    module's `pytestmark` marks are left alone: pytest-asyncio warns of them."""
    if not isinstance(item, pytest.Function) or item.get_closest_marker("virtual_time") is None:
        return False
    of_hypothesis = getattr(item.obj, "hypothesis", None)
    if not iscoroutinefunction(getattr(of_hypothesis, "inner_test", item.obj)):
        return False
    if item.get_closest_marker("asyncio") is None:
        item.add_marker("asyncio")
    return True


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "virtual_time: the async test runs on a loop whose time jumps to what is next"
    )
    config.addinivalue_line(
        "markers", "fakecri(**options): what the fixtures fakecri and fakecri_server are made with"
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "fakecri_strict", "rules of fakecri that were never hit are errors", "bool", default=False
    )
    parser.addini(
        _PYTHON_CLOCKS,
        "in tests marked virtual_time, time.time(), datetime.now() and time.monotonic() show the "
        "virtual time (needs time-machine)",
        "bool",
        default=True,
    )


def _report_unused(
    request: pytest.FixtureRequest, fake: public.FakeCRI | public.ServedFake
) -> None:
    lines = [f"{request.node.nodeid}: {rule.what}" for rule in fake.unused_rules()]
    if not lines:
        return
    if request.config.getini("fakecri_strict"):
        pytest.fail("rules that were never hit:\n" + "\n".join(lines), pytrace=False)
    request.node.add_report_section("teardown", _SECTION, "\n".join(lines))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    # The sections of reports also travel from the workers of pytest-xdist.
    texts = [
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for title, text in report.sections
        if title == _TITLE
    ]
    if texts:
        terminalreporter.section("fakecri: rules that were never hit")
        for text in texts:
            terminalreporter.write_line(text)

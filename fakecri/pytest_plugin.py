"""The pytest plugin: fixtures for other projects' tests, and a report of rules that were never hit.

`fakecri` is called directly, `fakecri_socket` is its endpoint (needs pytest-asyncio), and
`fakecri_server` is a fake on a socket for tests without an event loop. The marker `virtual_time`
runs an async test on a `VirtualLoop`. A rule that never decided
anything usually means a test that does not test what it says: the end of the run lists them. With
`fakecri_strict = true` in the pytest configuration they are errors. Nothing heavy is imported
before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from fakecri.fake import FakeCRI
    from fakecri.rules.faults import Rule
    from fakecri.serving.background import ServedFake

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # without pytest-asyncio the socket fixture cannot exist
    async_fixture = None  # type: ignore[assignment]

_SECTION: Final = "fakecri"
_TITLE: Final = f"Captured {_SECTION} teardown"  # what pytest makes of the name


@pytest.fixture
def fakecri(request: pytest.FixtureRequest) -> Iterator[FakeCRI]:
    """A fresh fake runtime, called directly: `await fakecri.call("RunPodSandbox", request)`."""
    from fakecri.fake import FakeCRI

    cri = FakeCRI()
    yield cri
    _report_unused(request, cri.unused_rules())


@pytest.fixture
def fakecri_server(request: pytest.FixtureRequest) -> Iterator[ServedFake]:
    """A fresh fake runtime on a socket, in a background thread; see `fakecri.serve`."""
    from fakecri.serving.background import serve

    with serve() as fake:
        yield fake
        _report_unused(request, fake.unused_rules())


if async_fixture is not None:

    @async_fixture
    async def fakecri_socket(fakecri: FakeCRI, tmp_path: Path) -> AsyncIterator[str]:
        """The endpoint (`unix:///...`) on which the `fakecri` of this test is served."""
        from fakecri.server import serve

        async with serve(fakecri, f"unix://{tmp_path}/cri.sock") as server:
            yield server.endpoint


class _VirtualTime:
    """Gives a test a `VirtualLoop`; registered only while pytest-asyncio asks for a marked test,
    so that all others keep the loop that their project chose."""

    @staticmethod
    def pytest_asyncio_loop_factories() -> dict[str, Any]:
        from simtime import VirtualLoop

        return {"virtual": VirtualLoop}


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """`@pytest.mark.virtual_time` makes an `async def` test and its async fixtures run in virtual
    time."""
    if metafunc.definition.get_closest_marker("virtual_time") is None:
        return (yield)
    if not hasattr(metafunc.config.hook, "pytest_asyncio_loop_factories"):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the marker virtual_time needs pytest-asyncio 1.4 or "
            "newer; install it, or call simtime.run_virtual in a test without async"
        )
    plugins = metafunc.config.pluginmanager
    plugins.register(_VirtualTime, "fakecri virtual time")
    try:
        return (yield)
    finally:
        plugins.unregister(_VirtualTime)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "virtual_time: the async test runs on a loop whose time jumps to what is next"
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "fakecri_strict", "rules of fakecri that were never hit are errors", "bool", default=False
    )


def _report_unused(request: pytest.FixtureRequest, rules: list[Rule]) -> None:
    if not rules:
        return
    lines = [f"{request.node.nodeid}: {rule.what}" for rule in rules]
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

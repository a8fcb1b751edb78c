"""The device plugin made for tests: what it answers, and how it is made to misbehave."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.deviceplugin import api_pb2 as api
from kubecri.deviceplugin import api_pb2_grpc as services

from fakecri.deviceplugin import FakeDevicePlugin, InProcessPlugins, PluginDevice
from fakecri.deviceplugin.cli import main, read_device
from fakecri.errors import CriError

WIDGET = "vendor.example/widget"


def allocate(*ids: str) -> Any:
    wish = api.ContainerAllocateRequest(devices_ids=ids)
    return api.AllocateRequest(container_requests=[wish])


@pytest.mark.virtual_time
async def test_answers_without_being_told_anything() -> None:
    plugin = FakeDevicePlugin(WIDGET, ["a", PluginDevice("b", "Broken", (0, 1))])
    given = await plugin.call("Allocate", allocate("a", "b"))
    assert given.container_responses[0].envs == {  # type: ignore[attr-defined]
        "DEVICES_VENDOR_EXAMPLE_WIDGET": "a,b"
    }
    assert plugin.allocated == [("a", "b")]
    options = await plugin.call("GetDevicePluginOptions", api.Empty())
    assert options == api.DevicePluginOptions()
    wish = api.ContainerPreferredAllocationRequest(
        available_deviceIDs="abc", must_include_deviceIDs="c", allocation_size=2
    )
    chosen = await plugin.call(
        "GetPreferredAllocation", api.PreferredAllocationRequest(container_requests=[wish])
    )
    assert list(chosen.container_responses[0].deviceIDs) == ["c", "a"]  # type: ignore[attr-defined]
    listed = await anext(plugin.stream("ListAndWatch", api.Empty()))
    assert [(d.ID, d.health, len(d.topology.nodes)) for d in listed.devices] == [  # type: ignore[attr-defined]
        ("a", "Healthy", 0),
        ("b", "Broken", 2),
    ]
    told = plugin.registration()
    assert (told.version, told.endpoint) == ("v1beta1", "vendor.example-widget.sock")


@pytest.mark.virtual_time
async def test_watchers_get_every_list_until_the_plugin_dies() -> None:
    plugin = FakeDevicePlugin(WIDGET, ["a"])
    seen: list[list[str]] = []

    async def watch() -> None:
        async for listed in plugin.stream("ListAndWatch", api.Empty()):
            seen.append([f"{d.ID} {d.health}" for d in listed.devices])  # type: ignore[attr-defined]

    watching = asyncio.create_task(watch())
    await asyncio.sleep(1)
    plugin.set_health("a", "Unhealthy")
    plugin.set_devices("b")
    plugin.end_streams()
    with pytest.raises(CriError) as error:
        await watching
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    # what changed between two looks is one list or two, never an old one
    assert (seen[0], seen[-1]) == (["a Healthy"], ["b Healthy"])


@pytest.mark.virtual_time
async def test_faults_of_calls() -> None:
    loop = asyncio.get_running_loop()
    plugin = FakeDevicePlugin(WIDGET, ["a"])
    plugin.fails("Allocate", "no power", code="ABORTED", times=1)
    with pytest.raises(CriError) as error:
        await plugin.call("Allocate", allocate("a"))
    assert (error.value.code(), error.value.details()) == (grpc.StatusCode.ABORTED, "no power")
    await plugin.call("Allocate", allocate("a"))
    plugin.delays("Allocate", 5.0)
    began_s = loop.time()
    await plugin.call("Allocate", allocate("a"))
    assert loop.time() - began_s == pytest.approx(5)
    plugin.hangs("Allocate")
    with pytest.raises(CriError) as error:
        await plugin.call("Allocate", allocate("a"), timeout_s=30)
    assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    plugin.works("Allocate")
    await plugin.call("Allocate", allocate("a"))
    plugin.answer_count = 0
    assert await plugin.call("Allocate", allocate("a")) == api.AllocateResponse()
    with pytest.raises(ValueError, match="'Alocate' is no method of a device plugin; wanted"):
        plugin.fails("Alocate", "x")


@pytest.mark.virtual_time
async def test_requests_are_not_shared_with_the_caller() -> None:
    plugin = FakeDevicePlugin(WIDGET, ["a"])
    request = allocate("a")
    await plugin.call("Allocate", request)
    request.container_requests[0].devices_ids[0] = "z"
    assert plugin.allocated == [("a",)]


@pytest.mark.virtual_time
async def test_the_directory_in_process() -> None:
    plugins, plugin = InProcessPlugins(), FakeDevicePlugin(WIDGET, ["a"])
    with pytest.raises(CriError, match="no kubelet takes registrations"):
        await plugins.start(plugin)
    registered: list[str] = []

    async def register(request: Any) -> None:
        registered.append(request.resource_name)
        if len(registered) == 2:
            raise ValueError("not you")

    await plugins.open(register)
    await asyncio.sleep(0.1)
    assert registered == [WIDGET]  # it is faithful
    connection = await plugins.connect(plugin.endpoint)
    await connection.call("Allocate", allocate("a"))
    await plugins.stop(plugin)
    with pytest.raises(CriError, match="connection refused"):
        await connection.call("Allocate", allocate("a"))
    with pytest.raises(ConnectionRefusedError, match="no plugin listens at"):
        await plugins.connect(plugin.endpoint)
    with pytest.raises(CriError, match="UNKNOWN: not you"):
        await plugins.start(plugin, faithful=False)
    assert plugin.refusals == ["not you"]
    await plugins.open(register)
    await asyncio.sleep(0.1)
    assert len(registered) == 2  # it is not faithful any more


# The command


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--device", "a@x"], "--device a@x: wanted numbers of NUMA nodes behind the @"),
        (["--directory", "/nowhere/at/all"], "--directory /nowhere/at/all: no such directory"),
    ],
)
def test_wrong_options_are_one_line(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--resource", WIDGET, *words]) == 2
    assert capsys.readouterr().err.startswith(f"fakecri: error: {says}")


def test_devices_of_the_command_line() -> None:
    assert read_device("a") == PluginDevice("a")
    assert read_device("a@3") == PluginDevice("a", nodes=(3,))


@asynccontextmanager
async def registry(directory: Path) -> AsyncIterator[asyncio.Queue[Any]]:
    """A kubelet that only takes registrations."""
    taken: asyncio.Queue[Any] = asyncio.Queue()

    class Registration(services.RegistrationServicer):
        async def Register(self, request: Any, context: Any) -> Any:
            taken.put_nowait(request)
            return api.Empty()

    server = grpc.aio.server()
    services.add_RegistrationServicer_to_server(Registration(), server)
    server.add_insecure_port(f"unix:{directory}/kubelet.sock")
    await server.start()
    yield taken
    await server.stop(None)


@pytest.mark.slow
async def test_the_command_serves_a_plugin_and_follows_its_stdin(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("p")
    async with registry(directory) as taken:
        command = [sys.executable, "-m", "fakecri", "device-plugin", "--resource", WIDGET]
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--device", "w1", "--directory", str(directory)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        request = await asyncio.wait_for(taken.get(), 200)
        assert request.resource_name == WIDGET
        options = [("grpc.default_authority", "localhost")]
        target = f"unix:{directory / request.endpoint}"
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            stub = services.DevicePluginStub(channel)
            lists = stub.ListAndWatch(api.Empty()).__aiter__()
            assert (await anext(lists)).devices[0].health == "Healthy"
            process.stdin.write(b"nonsense\nfail Allocate no power\nunhealthy w1\n")
            assert (await anext(lists)).devices[0].health == "Unhealthy"
            with pytest.raises(grpc.aio.AioRpcError, match="no power"):
                await stub.Allocate(allocate("w1"))
        process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
    assert process.returncode == 0
    calls = [json.loads(line) for line in out.decode().splitlines()]
    assert [call["method"] for call in calls] == ["ListAndWatch", "Allocate"]
    assert calls[1]["request"] == {"container_requests": [{"devices_ids": ["w1"]}]}
    assert err.decode() == (
        "fakecri: error: nonsense: no such command; fakecri device-plugin --help lists them\n"
    )
    assert not (directory / request.endpoint).exists()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "unhealthy w1\nnonsense\n"], ids=["/dev/null", "a file"])
async def test_the_command_serves_when_its_stdin_is_nothing_to_wait_for(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """In the background of a script stdin is /dev/null; a file is obeyed to its end."""
    directory = tmp_path_factory.mktemp("p")
    lines = directory / "lines" if text else Path("/dev/null")
    if text:
        lines.write_text(text)
    async with registry(directory) as taken:
        with lines.open() as stdin:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "fakecri", "device-plugin", "--resource", WIDGET),
                *("--device", "w1", "--directory", str(directory)),
                stdin=stdin,
                stderr=asyncio.subprocess.PIPE,
            )
        request = await asyncio.wait_for(taken.get(), 200)
        options = [("grpc.default_authority", "localhost")]
        target = f"unix:{directory / request.endpoint}"
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            lists = services.DevicePluginStub(channel).ListAndWatch(api.Empty()).__aiter__()
            wanted = "Unhealthy" if text else "Healthy"
            async with asyncio.timeout(200):
                while (await anext(lists)).devices[0].health != wanted:
                    pass
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
    assert process.returncode == 0
    assert [line.partition(": no such")[0] for line in err.decode().splitlines()] == (
        ["fakecri: error: nonsense"] if text else []
    )

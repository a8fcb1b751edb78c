"""The checked-in CRI against the wire table, and v1alpha2 against v1."""

import itertools
import re
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from kubecri.csi import api_pb2 as csi_pb2
from kubecri.deviceplugin import api_pb2 as deviceplugin_pb2
from kubecri.pluginregistration import api_pb2 as pluginregistration_pb2
from kubecri.podresources import api_pb2 as podresources_pb2
from kubecri.podresources_v1alpha1 import api_pb2 as podresources_alpha_pb2
from kubecri.v1 import api_pb2, api_pb2_grpc
from kubecri.v1alpha2 import api_pb2 as alpha_pb2
from kubecri.v1alpha2 import api_pb2_grpc as alpha_pb2_grpc
from places import DATA, DOCS, ROOT

Blocks = dict[tuple[str, str], list[tuple[str, ...]]]

SCALARS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def read_table(file: str = "cri-v1.tsv") -> Blocks:
    """(kind, name) -> rows, as written in the file."""
    blocks: Blocks = {}
    rows: list[tuple[str, ...]] = []
    for line in (DATA / file).read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("\t"):
            rows.append(tuple(line.strip("\t").split("\t")))
        else:
            kind, name = line.split()
            rows = blocks.setdefault((kind, name), [])
    return blocks


def file_blocks(file: Any) -> Blocks:
    """The same form, from a file descriptor."""
    blocks: Blocks = {}
    for service in file.services_by_name.values():
        blocks["service", service.name] = [
            (
                method.name,
                method.input_type.name,
                ("stream " if streams_out(file, service.name, method.name) else "")
                + method.output_type.name,
            )
            for method in service.methods
        ]
    for enum in file.enum_types_by_name.values():
        blocks["enum", enum.name] = [(str(v.number), v.name) for v in enum.values]
    for message in file.message_types_by_name.values():
        add_message(blocks, message, "")
    return blocks


def add_message(blocks: Blocks, message: Any, outer: str) -> None:
    name = f"{outer}{message.name}"
    blocks["message", name] = [(str(f.number), f.name, field_type(f)) for f in message.fields]
    for enum in message.enum_types:
        blocks["enum", f"{name}.{enum.name}"] = [(str(v.number), v.name) for v in enum.values]
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry:
            add_message(blocks, nested, f"{name}.")


def is_repeated(field: Any) -> bool:
    if hasattr(field, "is_repeated"):  # protobuf 6.31 and newer; `label` is on its way out
        return bool(field.is_repeated)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)


def field_type(field: Any) -> str:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        return f"map<{single_type(key)},{single_type(value)}>"
    return ("repeated " if is_repeated(field) else "") + single_type(field)


def single_type(field: Any) -> str:
    named = field.message_type or field.enum_type
    if named is None:
        return SCALARS[field.type]
    return str(named.full_name).removeprefix(f"{field.file.package}.")


def streams_out(file: Any, service: str, method: str) -> bool:
    """Older protobuf descriptors do not tell; the serialised ones do."""
    from google.protobuf import descriptor_pb2

    parsed = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
    found = {s.name: {m.name: m for m in s.method} for s in parsed.service}[service][method]
    assert not found.client_streaming
    return bool(found.server_streaming)


def normalised(blocks: Blocks) -> Blocks:
    return {
        name: [tuple(p.replace(", ", ",") for p in row) for row in rows]
        for name, rows in blocks.items()
    }


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("cri-v1.tsv", api_pb2),
        ("deviceplugin-v1beta1.tsv", deviceplugin_pb2),
        ("podresources-v1.tsv", podresources_pb2),
        ("podresources-v1alpha1.tsv", podresources_alpha_pb2),
        ("pluginregistration-v1.tsv", pluginregistration_pb2),
        ("csi-v1.tsv", csi_pb2),
    ],
    ids=["cri", "deviceplugin", "podresources", "podresources-alpha", "pluginregistration", "csi"],
)
def test_every_message_field_value_and_method_is_as_in_the_wire_table(
    file: str, module: Any
) -> None:
    table, ours = normalised(read_table(file)), normalised(file_blocks(module.DESCRIPTOR))
    assert ours.keys() == table.keys()
    for name, rows in table.items():
        assert sorted(ours[name]) == sorted(rows), name


@pytest.mark.parametrize(
    ("file", "blocks"),
    [
        ("cri-v1.tsv", {"enum": 11, "message": 170, "service": 2}),
        ("deviceplugin-v1beta1.tsv", {"message": 20, "service": 2}),
        ("podresources-v1.tsv", {"message": 15, "service": 1}),
        ("podresources-v1alpha1.tsv", {"message": 5, "service": 1}),
        ("pluginregistration-v1.tsv", {"message": 4, "service": 1}),
        ("csi-v1.tsv", {"enum": 3, "message": 28, "service": 2}),
    ],
)
def test_the_table_is_whole(file: str, blocks: dict[str, int]) -> None:
    kinds = [kind for kind, _ in read_table(file)]
    assert {kind: kinds.count(kind) for kind in sorted(set(kinds))} == blocks


@pytest.mark.parametrize("module", [api_pb2, alpha_pb2], ids=["v1", "v1alpha2"])
def test_names_in_the_descriptor_pool(module: Any) -> None:
    """Full names are the wire's; the file name cannot meet another package's api.proto."""
    version = module.DESCRIPTOR.package.removeprefix("runtime.")
    assert module.VersionRequest.DESCRIPTOR.full_name == f"runtime.{version}.VersionRequest"
    assert module.DESCRIPTOR.name == f"kubecri/{version}/api.proto"


ALPHA_LACKS = {
    "RuntimeService": [
        "CheckpointContainer",
        "GetContainerEvents",
        "ListMetricDescriptors",
        "ListPodSandboxMetrics",
        "RuntimeConfig",
        "StreamContainerStats",
        "StreamContainers",
        "StreamPodSandboxMetrics",
        "StreamPodSandboxStats",
        "StreamPodSandboxes",
        "UpdatePodSandboxResources",
    ],
    "ImageService": ["StreamImages"],
}


@pytest.mark.parametrize("service", ALPHA_LACKS)
def test_v1alpha2_lacks_the_calls_that_came_later_CRI_010(service: str) -> None:
    new = {m.name for m in api_pb2.DESCRIPTOR.services_by_name[service].methods}
    old = {m.name for m in alpha_pb2.DESCRIPTOR.services_by_name[service].methods}
    assert old < new
    assert sorted(new - old) == ALPHA_LACKS[service]


def test_v1alpha2_is_v1_on_the_wire_CRI_010() -> None:
    """Every field of v1alpha2 is in v1 with the same name, number and wire type."""
    v1 = normalised(file_blocks(api_pb2.DESCRIPTOR))
    for (kind, name), rows in normalised(file_blocks(alpha_pb2.DESCRIPTOR)).items():
        if kind == "service":
            continue
        different = [row for row in rows if row not in v1[kind, name]]
        same_bytes = [("2", "value", "string")] if name == "KeyValue" else []
        assert different == same_bytes, name


def test_a_v1_message_passes_through_v1alpha2() -> None:
    config = api_pb2.PodSandboxConfig(
        metadata=api_pb2.PodSandboxMetadata(name="p", uid="u", namespace="n", attempt=3),
        labels={"a": "b"},
        linux=api_pb2.LinuxPodSandboxConfig(cgroup_parent="/kubepods/podu"),
    )
    through = alpha_pb2.PodSandboxConfig.FromString(config.SerializeToString())
    assert through.metadata.attempt == 3
    assert api_pb2.PodSandboxConfig.FromString(through.SerializeToString()) == config


@pytest.mark.parametrize(
    ("module", "package"),
    [(api_pb2_grpc, "runtime.v1"), (alpha_pb2_grpc, "runtime.v1alpha2")],
    ids=["v1", "v1alpha2"],
)
def test_stubs_call_the_right_methods(module: Any, package: str) -> None:
    asked: list[str] = []

    class Channel(grpc.Channel):
        def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
            asked.append(method)

        unary_stream = stream_unary = stream_stream = unary_unary

        def subscribe(self, *args: Any) -> None: ...
        def unsubscribe(self, *args: Any) -> None: ...
        def close(self) -> None: ...

    module.RuntimeServiceStub(Channel())
    module.ImageServiceStub(Channel())
    assert f"/{package}.RuntimeService/RunPodSandbox" in asked
    assert f"/{package}.ImageService/PullImage" in asked


PROTO = ROOT / "protos" / "cri" / "v1" / "api.proto"


def test_every_service_call_message_and_enum_says_what_it_is() -> None:
    lines = [line.strip() for line in PROTO.read_text().splitlines()]
    opens = ("service ", "rpc ", "message ", "enum ")
    silent = [
        line
        for above, line in itertools.pairwise(lines)
        if line.startswith(opens) and not above.startswith("//")
    ]
    assert silent == []


def test_the_comments_cite_rules_that_exist() -> None:
    rules = (DOCS / "spec" / "cri.md").read_text()
    cited = sorted(set(re.findall(r"CRI-\d{3}", PROTO.read_text())))
    assert len(cited) > 50
    assert [rule for rule in cited if f"**{rule}**" not in rules] == []

"""The table of API types: made by its command alone, and read as it says."""

from __future__ import annotations

import sys

import pytest
from places import ROOT

from kubeobjects.schema.internal import internal
from kubeobjects.schema.messages import Schema, Shape, message, minors, schema_of

sys.path.insert(0, str(ROOT / "tools"))

import api_schema
import go_types

GO = """
import (
\tmetav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Phase string
type Amounts map[Name]resource.Quantity
type Name string

type Thing struct {
\tmetav1.TypeMeta `json:",inline"`
\t// A comment.
\tName *string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
\tPhase Phase `json:"phase" protobuf:"bytes,2,opt,name=phase"` // at the end
\tParts []Part `json:"parts" patchStrategy:"merge" patchMergeKey:"id" protobuf:"bytes,3,rep"`
\tLimits Amounts `json:"limits,omitempty" protobuf:"bytes,4,rep,name=limits"`
\tAt metav1.Time `json:"at,omitempty,omitzero" protobuf:"bytes,5,opt,name=at"`
\tByName map[Name]Phase `json:"byName,omitempty" protobuf:"bytes,6,rep,name=byName"`
}
"""


def lines_of(go: str, schema: dict[str, object]) -> list[str]:
    package = go_types.read_package("core.v1", go)
    package.imports |= {"resource": "api.resource"}
    sources = go_types.GoSources({"core.v1": package})
    fields = [field for field in package.structs["Thing"] if field.number]
    return [
        api_schema.field_line("core.v1", field, sources.resolved(package, field.type), schema)
        for field in fields
    ]


def test_a_struct_of_go_is_a_line_for_each_field() -> None:
    parts = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]}
    schema = {"properties": {"parts": parts, "phase": {"default": ""}}, "required": ["phase"]}
    assert lines_of(GO, schema) == [
        "1 name *string",
        "2 phase string always v1.Phase required",
        "3 parts []Part always list=map:id merge=id",
        "4 limits {}Quantity",
        "5 at Time omitzero",
        "6 byName {}string v1.Name:v1.Phase",
    ]


def test_the_tables_are_as_they_were_made() -> None:
    assert api_schema.main(["--check"]) == 0
    text = (api_schema.TABLES / "kubernetes-1.36.txt").read_text()
    assert api_schema.untouched(text)
    assert not api_schema.untouched(text.replace("1 volumes []Volume", "1 volumes []Container"))


def test_other_sources_are_refused(tmp_path: object) -> None:
    with pytest.raises(FileNotFoundError):
        api_schema.main([str(tmp_path), "--kubernetes", "1.36.2"])


def test_a_minor_without_a_table_names_those_there_are() -> None:
    with pytest.raises(LookupError, match=r"no API types of Kubernetes 1\.2; there are those of 1"):
        Schema("1.2")
    assert minors()[-1] == "1.36"


def test_what_the_words_of_a_line_mean() -> None:
    spec = message("core.v1.PodSpec").in_json
    assert (spec["containers"].merge_key, spec["containers"].list_keys) == ("name", ("name",))
    assert (spec["tolerations"].merge_key, spec["tolerations"].list_type) == (None, "atomic")
    assert spec["nodeSelector"].map_type == "atomic"
    assert spec["serviceAccount"].go_name == "deprecatedserviceaccount"
    assert message("core.v1.Pod").typed
    assert message("core.v1.LocalObjectReference").atomic
    port = message("core.v1.ContainerPort").in_json
    assert (port["protocol"].default, port["containerPort"].default) == ("TCP", None)


def test_which_fields_json_has_although_nothing_is_in_them() -> None:
    pod = message("core.v1.Pod").in_json
    assert all(pod[name].filled for name in ("metadata", "spec", "status"))
    status = message("core.v1.PodStatus").in_json
    assert not status["startTime"].filled
    assert status["startTime"].kept
    condition = message("core.v1.PodCondition").in_json["lastProbeTime"]
    assert (condition.filled, condition.zero) == (True, None)
    assert message("core.v1.PodSpec").in_json["containers"].zero is None
    assert message("core.v1.ResourceFieldSelector").in_json["divisor"].zero == "0"


def test_types_that_stand_inline_are_among_the_others() -> None:
    handler = message("core.v1.Probe").in_json
    assert handler["httpGet"].shape is Shape.POINTER
    assert "ProbeHandler" not in handler


def test_every_internal_type_can_be_shown() -> None:
    schema = schema_of()
    for group in ("core", "storage"):
        kinds = [
            kind
            for kind in schema.kinds(f"{group}.v1")
            if schema.has_internal(f"{group}.v1.{kind}")
        ]
        assert len(kinds) > 5
        for kind in kinds:
            assert internal({}, message(f"{group}.v1.{kind}"))

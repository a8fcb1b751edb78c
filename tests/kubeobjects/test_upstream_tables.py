"""The tables of flags, kinds and metrics: made by their command alone, and whole."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from fakekubeapi.resources import RESOURCES
from fakekubeapi.resources.table_cells import CELLS

sys.path.insert(0, str(ROOT / "tools"))

import api_schema
import go_types
import upstream_tables

COLUMN = '{Name: "%s", Type: "%s", %sDescription: metav1.ObjectMeta{}.SwaggerDoc()["name"]},'
SOURCES = {
    api_schema.VERSION: 'DefaultKubeBinaryVersion = "1.36"',
    upstream_tables.CONFIGURATION: """
type KubeletConfiguration struct {
\tMaxPods int32 `json:"maxPods,omitempty"`
\tAuthentication KubeletAuthentication `json:"authentication"`
}

type KubeletAuthentication struct {
\tEnabled *bool `json:"enabled,omitempty"`
\tCacheTTL metav1.Duration `json:"cacheTTL"`
}
""",
    upstream_tables.FLAGS: """
func AddOther() {
\tfs.BoolVar(&c.Other, "other", c.Other, "")
}
func AddKubeletConfigFlags() {
\tfs.BoolVar(&c.Authentication.Enabled, "auth", c.Authentication.Enabled, ""+
\t\t"more")
\tfs.DurationVar(&c.Authentication.CacheTTL.Duration, "ttl", c.TTL.Duration, "")
\tfs.Var(cliflag.NewMap(&c.MaxPods), "max-pods", "")
}
""",
    upstream_tables.CADVISOR: """
\t\t\tname:      "container_b",
\t\t\thelp:      "Upstream's sentence",
\t\t\tvalueType: prometheus.CounterValue,
\t\t\textraLabels: []string{"device", "major"},
\tdesc := prometheus.NewDesc("container_a", "Upstream's", labels, nil)
\tch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, values...)
""",
    upstream_tables.PRINTERS: "\n".join(
        (
            "\tcolumns := []metav1.TableColumnDefinition{",
            COLUMN % ("Name", "string", 'Format: "name", '),
            "\t}",
            "\tcolumns = append(columns, []metav1.TableColumnDefinition{",
            COLUMN % ("Nominated Node", "integer", "Priority: 1, "),
            "\t}...)",
            "\t_ = h.TableHandler(columns, printPod)",
        )
    ),
    upstream_tables.DISCOVERY / "api__v1.json": json.dumps(
        {
            "resources": [
                {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get"]}
                | {"shortNames": ["po"], "categories": ["all"]},
                {"name": "pods/status"},
                {"name": "pods/exec"},
                {"name": "asks", "kind": "Ask", "namespaced": False, "verbs": ["create"]},
            ]
        }
    ),
}


@pytest.fixture
def tree(tmp_path: Path) -> Any:
    for path, text in SOURCES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return api_schema.Tree(tmp_path, "1.36.2")


def test_a_flag_is_a_line_with_the_field_that_it_sets(tree: Any) -> None:
    assert list(upstream_tables.kubelet_flags(tree, "")) == [
        "auth authentication.enabled switch",
        "ttl authentication.cacheTTL",
        "max-pods maxPods",
    ]


def test_a_kind_is_a_line_with_lines_of_its_columns(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_tables, "SERVED", {"v1": ("pods", "asks")})
    assert list(upstream_tables.kinds(tree, "")) == [
        "v1 pods Pod short=po below=status categories=all",
        "  string name 0 Name",
        "  integer - 1 Nominated Node",
        "v1 asks Ask cluster asked",
    ]


def test_a_metric_has_cadvisors_type_and_labels_and_our_help(tree: Any) -> None:
    before = "container_a counter - ours\ncontainer_b gauge x ours, too\n"
    assert list(upstream_tables.cadvisor_metrics(tree, before)) == [
        "container_a gauge - ours",
        "container_b counter device,major ours, too",
    ]
    with pytest.raises(go_types.GoTypeError, match="container_c"):
        list(upstream_tables.cadvisor_metrics(tree, "container_c gauge - ours\n"))


def test_no_table_was_changed_by_hand() -> None:
    assert upstream_tables.main(["--check"]) == 0


def test_each_column_has_a_cell() -> None:
    columns = {r.qualified: len(r.columns) for r in RESOURCES if r.stored}
    assert columns == {name: len(cells) for name, cells in CELLS.items()}

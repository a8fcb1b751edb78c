"""--node-labels (CFG-011)."""

from __future__ import annotations

import pytest

from refkubelet.node.labels import ALLOWED, NodeLabelError, node_labels


def test_labels_are_pairs_of_all_uses() -> None:
    assert node_labels(["a=1, b = 2", "a=3,"]) == {"a": "3", "b": "2"}


@pytest.mark.parametrize(
    "key",
    [
        *ALLOWED,
        "node.kubernetes.io/pool",
        "x.node.kubernetes.io/pool",
        "kubelet.kubernetes.io/a",
        "example.com/kubernetes.io",
        "notkubernetes.io/a",
        "kubernetes.io",
    ],
)
def test_labels_that_a_kubelet_may_set_CFG_011(key: str) -> None:
    assert node_labels([f"{key}=x"]) == {key: "x"}


@pytest.mark.parametrize(
    "key", ["kubernetes.io/role", "node-role.kubernetes.io/worker", "k8s.io/a", "x.k8s.io/a"]
)
def test_labels_of_kubernetes_that_it_may_not_set_CFG_011(key: str) -> None:
    with pytest.raises(NodeLabelError) as caught:
        node_labels([f"{key}=x,a=b,kubernetes.io/zz=1"])
    first, second = str(caught.value).splitlines()
    listed = " ".join(sorted([key, "kubernetes.io/zz"]))
    assert first == (
        f"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{listed}]"
    )
    assert second.startswith(
        "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix "
        "(kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set "
        "(beta.kubernetes.io/arch, "
    )


@pytest.mark.parametrize("pair", ["-a=1", "a=-", "a b=1", f"a={'x' * 64}"])
def test_what_is_no_label(pair: str) -> None:
    with pytest.raises(NodeLabelError, match=r"^invalid node labels: "):
        node_labels([pair])


def test_all_that_is_no_label_is_told() -> None:
    with pytest.raises(NodeLabelError) as caught:
        node_labels(["-a=1,b=c=d,k8s.io/x/y=1"])
    first, *_ = str(caught.value).splitlines()
    assert first.endswith("specified with --node-labels: [k8s.io/x/y]")
    with pytest.raises(NodeLabelError) as caught:
        node_labels(["-a=1,b=c=d"])
    key, value = str(caught.value).removeprefix("invalid node labels: ").split("; ")
    assert key.startswith('--node-labels: Invalid value: "-a": ')
    assert value.startswith('--node-labels: Invalid value: "c=d": ')


def test_a_label_may_have_no_value() -> None:
    assert node_labels(["a", "b=,,c = d "]) == {"a": "", "b": "", "c": "d"}

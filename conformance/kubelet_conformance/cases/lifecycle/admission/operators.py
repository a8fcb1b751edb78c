"""Admission by every operator of a node affinity, and by several terms."""

from typing import Any, Final

from kubelet_conformance.cases.lifecycle.admission.fit import AFFINITY
from kubelet_conformance.cases.lifecycle.admission.refusals import refused
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.manifests import PodPlan, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API = Feature.API
LABELS: Final = {"example.com/zone": "a", "example.com/cores": "8", "example.com/word": "many"}
ZONE, CORES, WORD, NONE = (f"example.com/{name}" for name in ("zone", "cores", "word", "none"))
NAME: Final = "metadata.name"

Rule = tuple[str, str, tuple[str, ...]]
"""Of a node selector: key, operator, values."""
MATCHING: Final[dict[str, Rule]] = {
    "in": (ZONE, "In", ("b", "a")),
    "not-in": (ZONE, "NotIn", ("b", "c")),
    "not-in-absent": (NONE, "NotIn", ("a",)),
    "exists": (ZONE, "Exists", ()),
    "absent": (NONE, "DoesNotExist", ()),
    "greater": (CORES, "Gt", ("7",)),
    "less": (CORES, "Lt", ("9",)),
}
OTHERS: Final[dict[str, Rule]] = {
    "in-others": (ZONE, "In", ("b", "c")),
    "in-absent": (NONE, "In", ("a",)),
    "not-in-own": (ZONE, "NotIn", ("b", "a")),
    "exists-not": (NONE, "Exists", ()),
    "absent-not": (ZONE, "DoesNotExist", ()),
    "greater-equal": (CORES, "Gt", ("8",)),
    "less-equal": (CORES, "Lt", ("8",)),
    "greater-word": (WORD, "Gt", ("1",)),
    "less-absent": (NONE, "Lt", ("1",)),
}


def needing(name: str, *terms: dict[str, list[Rule]]) -> PodPlan:
    """A pod that needs a node of one of these terms, each of rules by labels (`matchExpressions`)
    and by fields (`matchFields`)."""
    rows = [
        {by: [_written(*rule) for rule in rules] for by, rules in term.items()} for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": rows}}
    return pod(name, affinity={"nodeAffinity": required})


def _written(key: str, operator: str, values: tuple[str, ...]) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


async def labelled(node: Node) -> None:
    """Give the Node its labels."""
    await node.run_until(node.api.node_object, within_s=limits.START_S, what="the Node")
    await node.api.patch_node({"metadata": {"labels": LABELS}})
    await node.run_for(limits.WATCH_S)


@conformance(id="admit-affinity-operators", rules=["LIFE-226.1"], needs=[API], alone=True)
async def each_operator_decides_by_the_labels_of_the_node(node: Node) -> None:
    """What In, NotIn, Exists, DoesNotExist, Gt and Lt say of the node's labels decides: a label
    that is not there is in no list and no number, and neither greater nor less than its equal."""
    await labelled(node)
    by = "matchExpressions"
    await node.api.run_pods(*(needing(name, {by: [rule]}) for name, rule in MATCHING.items()))
    for name, rule in OTHERS.items():
        await refused(node, needing(name, {by: [rule]}), "NodeAffinity", AFFINITY)


@conformance(id="admit-affinity-terms", rules=["LIFE-226.1"], needs=[API], alone=True)
async def one_term_suffices_and_all_of_it_must_match(node: Node) -> None:
    """A node matches if one term does; of a term everything must match, labels and fields. A term
    that says nothing matches no node."""
    await labelled(node)
    labels, fields = "matchExpressions", "matchFields"
    good, bad = MATCHING["in"], OTHERS["in-others"]
    this, other = (NAME, "In", (node.name,)), (NAME, "In", ("another",))
    await node.api.run_pods(
        needing("second", {labels: [bad]}, {labels: [good]}),
        needing("first", {labels: [good]}, {}),
        needing("both", {labels: [good], fields: [this]}),
        needing("not-other", {fields: [(NAME, "NotIn", ("another",))]}),
    )
    for plan in (
        needing("one-bad", {labels: [good, bad]}),
        needing("bad-first", {labels: [bad, good]}),
        needing("field-bad", {labels: [good], fields: [other]}),
        needing("label-bad", {labels: [bad], fields: [this]}),
        needing("nothing", {}),
    ):
        await refused(node, plan, "NodeAffinity", AFFINITY)

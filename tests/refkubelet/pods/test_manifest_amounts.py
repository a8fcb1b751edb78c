"""What written amounts and numbers mean, in JSON and in YAML (SRC-004, SRC-036)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubeobjects.yaml.document import read_json_or_yaml
from kubeobjects.yaml.written import EscapedText
from refkubelet.model.objects import to_dict
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError
from refkubelet.pods.manifest_list import read_manifests

HEAD = '"apiVersion": "v1", "kind": "Pod"'
MAIN = '"name": "c", "image": "i:1"'
YAML = "# no brace\n"
LIST = '{"apiVersion": "v1", "kind": "PodList", "items": [%s]}'


def shown(text: str) -> dict[str, Any] | None:
    """The only pod of the text, which is one and is in a list; None: refused."""
    one, listed = (_read(form) for form in (text, _in_a_list(text)))
    if one and listed:
        for pod in (one, listed):
            del pod["metadata"]["uid"], pod["metadata"]["annotations"]["kubernetes.io/config.hash"]
    assert one == listed
    return one


def _in_a_list(text: str) -> str:
    return YAML + LIST % text.removeprefix(YAML) if text.startswith(YAML) else LIST % text


def _read(text: str) -> dict[str, Any] | None:
    source = PodSource.FILE
    try:
        (pod,) = read_manifests(text.encode(), source=source, origin="/m", node_name="n")
    except ManifestError:
        return None
    return to_dict(pod)


def pod(spec: str = "", *, container: str = "", more: str = "", metadata: str = "") -> str:
    return (
        f'{{{HEAD}, "metadata": {{"name": "p"{metadata}}}, '
        f'"spec": {{{spec}"containers": [{{{MAIN}{container}}}]}}{more}}}'
    )


def request(written: str) -> str:
    return pod(container=f', "resources": {{"requests": {{"memory": {written}}}}}')


def directory(written: str) -> str:
    return pod(f'"volumes": [{{"name": "v", "emptyDir": {{"sizeLimit": {written}}}}}], ')


AMOUNTS: list[tuple[str, str | None, str | None, str | None, str | None]] = [
    # written, as a request: in JSON, in YAML; as a size limit: in JSON, in YAML
    ("1", "1", "1", "1", "1"),
    ("-0", "0", "0", "0", "0"),
    ("1e3", "1e3", "1k", "1e3", "1k"),
    ("1E3", "1E3", "1k", "1E3", "1k"),
    ("1.0", "1", "1", "1", "1"),
    ("1.5", "1500m", "1500m", "1500m", "1500m"),
    ("1e-3", "1e-3", "1m", "1e-3", "1m"),
    ("1e-5", "1e-3", "1m", "10e-6", "10u"),
    ("1e-7", "1e-3", "1e-3", "100e-9", "100e-9"),
    ("0.00001", "1m", "1m", "10u", "10u"),
    ("1e20", "100e18", "100E", "100e18", "100E"),
    ("1e21", "1e21", "1e+21", "1e21", "1e+21"),
    ("9223372036854775808", *["9223372036854775808"] * 4),
    ("18446744073709551615", *["18446744073709551615"] * 4),
    ("18446744073709551616", *["18446744073709551616", "18446744073709552k"] * 2),
    ("99999999999999999999999", *["99999999999999999999999", "100e21"] * 2),
    ("123456789012345678901e-3", *["123456789012345678901e-3", "123456789012345680"] * 2),
    ("1" * 1001, None, None, None, None),
    ('"1e3"', "1e3", "1e3", "1e3", "1e3"),
    ('" 1 "', "1", "1", "1", "1"),
    ('"\u00a01"', "1", "1", "1", "1"),
    ('"\\t1"', None, None, None, None),
    ('"\\u0031"', None, "1", None, "1"),
    ('"1\\u006b"', None, "1k", None, "1k"),
    ('"+5"', "+5", "+5", "+5", "+5"),
    ('"0.0001"', "1m", "1m", "100u", "100u"),
    ('"1023.9999999Ki"', "1Mi", "1Mi", *["1048575999897600n"] * 2),
    ("null", "0", "0", None, None),
    *((odd, None, None, None, None) for odd in ('""', '" "', "true", "[1]", '{"a": 1}', "[]")),
]


@pytest.mark.parametrize("row", AMOUNTS, ids=[row[0][:30] for row in AMOUNTS])
def test_amounts_mean_what_they_mean_to_a_kubelet_SRC_036(row: tuple[str | None, ...]) -> None:
    """Made by the functions of kubelet 1.36.2. The last rows of each kind are refused."""
    written = str(row[0])
    found: list[str | None] = []
    for text in (request(written), YAML + request(written)):
        one = shown(text)
        found.append(one and one["spec"]["containers"][0]["resources"]["requests"]["memory"])
    for text in (directory(written), YAML + directory(written)):
        one = shown(text)
        found.append(one and one["spec"]["volumes"][0]["emptyDir"].get("sizeLimit"))
    if written == "null":
        assert shown(directory(written)) is not None
    assert found == list(row[1:])


LIMITS = '{"limits": {"memory": 1e3}}'
DIVISOR = '{"containerName": "c", "resource": "limits.memory", "divisor": 9223372036854775808e0}'
ITEMS = '{"items": [{"path": "a", "resourceFieldRef": %s}]}'
STATUS = f'{{"name": "c", "allocatedResources": {{"memory": 1e3}}, "resources": {LIMITS}}}'
PLACES = [
    pod(f'"initContainers": [{{"name": "i", "image": "i:1", "resources": {LIMITS}}}], '),
    pod(f'"resources": {LIMITS}, '),
    pod('"overhead": {"memory": 1e3}, "runtimeClassName": "r", '),
    pod(more=', "status": {"allocatedResources": {"memory": 1e3}}'),
    pod(more=f', "status": {{"resources": {LIMITS}}}'),
    *(
        pod(more=f', "status": {{"{name}": [{STATUS}]}}')
        for name in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    ),
]


@pytest.mark.parametrize("text", PLACES)
def test_each_amount_of_a_pod_keeps_its_form_SRC_036(text: str) -> None:
    in_json, in_yaml = (shown(form) for form in (text, YAML + text))
    written, meant = (json.dumps(form) for form in (in_json, in_yaml))
    assert text.count("1e3") <= written.count('"1e3"')
    assert written.replace('"1e3"', '"1k"') == meant
    for wrong in ('"1x"', "true", '"\\u0031"'):
        assert shown(text.replace("1e3", wrong)) is None


@pytest.mark.parametrize(
    "form",
    [
        f'"volumes": [{{"name": "v", "downwardAPI": {ITEMS}}}], ',
        f'"volumes": [{{"name": "v", "projected": {{"sources": [{{"downwardAPI": {ITEMS}}}]}}}}], ',
        None,
    ],
)
def test_divisors_are_judged_by_their_text_SRC_036(form: str | None) -> None:
    """1k is a divisor and 1e3 is none, to a kubelet."""
    for written, good in (("1000", True), ('"1k"', True), ("1e3", False), ('"\\u0031"', False)):
        reference = DIVISOR.replace("9223372036854775808e0", written)
        env = f', "env": [{{"name": "A", "valueFrom": {{"resourceFieldRef": {reference}}}}}]'
        text = pod(form % reference) if form else pod(container=env)
        assert (shown(text) is not None) == good


INTEGERS = {
    "grace": '"terminationGracePeriodSeconds": %s, ',
    "deadline": '"activeDeadlineSeconds": %s, ',
    "priority": '"volumes": [{"name": "v", "hostPath": {"path": "/"}}], "priority": %s, ',
}


@pytest.mark.parametrize("form", INTEGERS.values(), ids=INTEGERS)
@pytest.mark.parametrize("written", ["1e3", "1E3", "1.0", "1.0e2", "0.1e1"])
def test_integers_of_json_are_digits_SRC_004(form: str, written: str) -> None:
    assert shown(pod(form % written)) is None
    assert shown(pod(form % "1")) is not None
    assert shown(YAML + pod(form % written)) is not None


@pytest.mark.parametrize("written", ["9223372036854775808", "18446744073709551616", "1e20"])
def test_integers_have_64_bits_but_where_nobody_reads_them_SRC_004(written: str) -> None:
    wide = INTEGERS["grace"]
    unknown = f'"tomorrow": [{written}], '
    managed = f', "managedFields": [{{"manager": "m", "fieldsV1": {{"f:a": {written}}}}}]'
    for start in ("", YAML):
        assert shown(start + pod(wide % written)) is None
        assert shown(start + pod(wide % "9223372036854775807")) is not None
        assert shown(start + pod(unknown)) is not None
        assert shown(start + pod(metadata=managed)) is not None


@pytest.mark.parametrize(
    ("given", "address", "addresses"),
    [
        ('{"podIP": "10.0.0.1"}', "10.0.0.1", ["10.0.0.1"]),
        ('{"podIPs": [{"ip": "10.0.0.1"}]}', "10.0.0.1", ["10.0.0.1"]),
        ('{"podIP": "a", "podIPs": [{"ip": "b"}, {"ip": "c"}]}', "a", ["a"]),
        ('{"podIP": "a", "podIPs": [{"ip": "a"}, {"ip": "c"}]}', "a", ["a", "c"]),
        ('{"podIP": "", "podIPs": [{"ip": "a"}]}', "a", ["a"]),
        ('{"podIPs": [{}]}', None, [""]),
        ('{"podIP": null}', None, None),
    ],
)
def test_the_addresses_of_a_status_agree_SRC_036(
    given: str, address: str | None, addresses: list[str] | None
) -> None:
    one = shown(pod(more=f', "status": {given}'))
    assert one is not None
    found = one["status"].get("podIPs")
    assert one["status"].get("podIP") == address
    assert (found and [entry["ip"] for entry in found]) == addresses
    assert "hostIPs" not in one["status"]
    hosts = shown(pod(more=', "status": {"hostIP": "1.1.1.1"}'))
    assert hosts is not None
    assert hosts["status"] == {"hostIP": "1.1.1.1", "phase": "Pending"}


def test_old_annotations_of_init_containers_are_dropped_SRC_036() -> None:
    old = ", ".join(
        f'"pod.{stage}.kubernetes.io/init-container{what}": "x"'
        for stage in ("alpha", "beta")
        for what in ("s", "-statuses")
    )
    one = shown(pod(metadata=f', "annotations": {{{old}, "mine": "y"}}'))
    assert one is not None
    assert one["metadata"]["annotations"] == {"kubernetes.io/config.source": "file", "mine": "y"}


def test_what_a_status_leaves_out_is_nothing_SRC_004() -> None:
    for status in ('{"name": "c"}', '{"name": "c", "restartCount": null}', "{}"):
        one = shown(pod(more=f', "status": {{"containerStatuses": [{status}]}}'))
        assert one is not None
        assert one["status"]["containerStatuses"][0]["restartCount"] == 0
    assert shown(pod(more=', "status": {"conditions": [{}]}')) is not None


def test_an_alias_is_an_amount_in_one_place_only_SRC_036() -> None:
    """A number that labels share with limits stays a number, and is refused as a label."""
    text = (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n"
        "  - {name: c, image: i, resources: {limits: &a {cpu: 1}}}\n"
        "metadata: {name: p, labels: *a}\n"
    )
    with pytest.raises(ManifestError, match=r"metadata\.labels\.cpu: wanted a text, found an int"):
        read_manifests(text.encode(), source=PodSource.FILE, origin="/m", node_name="n")


def test_a_wrong_amount_of_a_list_is_named_with_its_line_SRC_036() -> None:
    text = LIST % ("\n" + request("1") + ",\n" + request('"1x"'))
    with pytest.raises(ManifestError) as caught:
        read_manifests(text.encode(), source=PodSource.FILE, origin="/m", node_name="n")
    words = "items[1]: line 3: spec.containers[0].resources.requests.memory: '1x' is no quantity"
    assert str(caught.value).startswith(words)


def test_escapes_mark_their_texts_alone_SRC_036() -> None:
    """Also a text that is written like the mark, which halves of pairs of surrogates are."""
    text = r'{"a": "\ud800", "\u0062": ["x", "\"x", "\ud83d\ude00"], "c\\": {"d": 1.50}}'
    value = read_json_or_yaml(text.encode()).value
    assert value == {"a": "\ufffd", "b": ["x", '"x', "\U0001f600"], "c\\": {"d": 1.5}}
    kinds = [type(item) for item in (value["a"], *value["b"])]
    assert kinds == [EscapedText, str, EscapedText, EscapedText]
    assert {type(key) for key in value} == {str}
    assert value["c\\"]["d"].written == "1.50"

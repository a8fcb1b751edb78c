"""Which requests are passed on, and where they go."""

from typing import Any

import pytest
from fakekubeapi_helpers import NODES, PODS, create, get, pod

from fakekubeapi import FakeApi, StatusError
from fakekubeapi.kubelets.addresses import kubelet_of, parts_of, pod_address, service_address
from fakekubeapi.kubelets.log_options import log_query
from fakekubeapi.kubelets.options import KubeletOptions
from fakekubeapi.kubelets.paths import Passed, check_method, passed_on
from fakekubeapi.kubelets.places import Place, container_of
from fakekubeapi.kubelets.refusals import refusal_of_log
from fakekubeapi.kubelets.relay import through

OPTIONS = KubeletOptions()
POD_A = "/api/v1/namespaces/default/pods/a"


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/api/v1/namespaces/x/pods/a/log", Passed("pods", "x", "a", "log")),
        ("/api/v1/namespaces/x/pods/a/exec", Passed("pods", "x", "a", "exec")),
        ("/api/v1/nodes/n/proxy", Passed("nodes", "", "n", "proxy")),
        ("/api/v1/nodes/n:1/proxy/a%2Fb", Passed("nodes", "", "n:1", "proxy", "/a%2Fb")),
        ("/api/v1/namespaces/x/services/s/proxy/", Passed("services", "x", "s", "proxy", "/")),
        (
            "/api/v1/namespaces/x/pods/https%3Aa%3A1/proxy",
            Passed("pods", "x", "https:a:1", "proxy"),
        ),
        ("/api/v1/namespaces/x/pods/a/status", None),
        ("/api/v1/namespaces/x/pods/a", None),
        ("/api/v1/namespaces/x/pods/a/log/more", None),
        ("/api/v1/namespaces/x/pods//log", None),
        ("/api/v1/namespaces/x/nodes/n/proxy", None),
        ("/api/v1/pods/a/log", None),
        ("/apis/apps/v1/namespaces/x/pods/a/log", None),
    ],
)
def test_paths(path: str, wanted: Passed | None) -> None:
    assert passed_on(path) == wanted


@pytest.mark.parametrize(
    ("subresource", "method", "fine"),
    [
        ("log", "GET", True),
        ("log", "POST", False),
        ("exec", "POST", True),
        ("exec", "PUT", False),
        ("proxy", "DELETE", True),
    ],
)
def test_methods(subresource: str, method: str, fine: bool) -> None:
    passed = Passed("pods", "x", "a", subresource)
    if fine:
        check_method(passed, method)
    else:
        with pytest.raises(StatusError) as caught:
            check_method(passed, method)
        assert caught.value.code == 405


def node(*addresses: tuple[str, str], port: int = 0) -> dict[str, Any]:
    rows = [{"type": kind, "address": address} for kind, address in addresses]
    status: dict[str, Any] = {"addresses": rows}
    if port:
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
    return {"metadata": {"name": "n"}, "status": status}


def test_the_first_type_that_a_node_has_is_taken_and_its_port() -> None:
    found = node(("Hostname", "n"), ("InternalIP", "10.0.0.1"), port=18250)
    assert kubelet_of(found, OPTIONS) == ("10.0.0.1", 18250)
    by_name = KubeletOptions(preferred_address_types=("Hostname", "InternalIP"))
    assert kubelet_of(found, by_name) == ("n", 18250)
    assert kubelet_of(node(("InternalIP", "::1")), OPTIONS) == ("::1", 10250)


def test_a_node_without_a_wanted_address() -> None:
    options = KubeletOptions(preferred_address_types=("ExternalIP",))
    with pytest.raises(StatusError) as caught:
        kubelet_of(node(("Hostname", "n")), options)
    message = "no preferred addresses found; known addresses: [{Hostname n}]"
    assert (caught.value.code, caught.value.reason, caught.value.message) == (500, "", message)


@pytest.mark.parametrize("identity", ["a:b:c", "ftp:a:1", ":1", "http::1", "a:b:c:d", ""])
def test_wrong_identities(identity: str) -> None:
    with pytest.raises(StatusError, match=f'invalid pod request "{identity}"'):
        parts_of(identity, "pod")


def test_scheme_name_port() -> None:
    assert parts_of("a", "pod") == ("", "a", "")
    assert parts_of("a:http", "pod") == ("", "a", "http")
    assert parts_of("https:a:", "pod") == ("https", "a", "")


def ready_pod(name: str, ip: str, *, ready: str = "True", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "containers": [
                {"name": "c"},
                {"name": "d", "ports": [{"name": "web", "containerPort": 8080}]},
            ]
        },
        "status": {"podIPs": [{"ip": ip}], "conditions": [{"type": "Ready", "status": ready}]},
    }


def test_a_pod_is_at_its_first_port() -> None:
    found = ready_pod("a", "10.1.0.1")
    assert pod_address(found, "") == ("10.1.0.1", "8080")
    assert pod_address(found, "99") == ("10.1.0.1", "99")
    del found["status"]["podIPs"]
    with pytest.raises(StatusError, match="address not allowed"):
        pod_address(found, "")


def service(*ports: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "s"}, "spec": {"selector": {"app": "x"}, "ports": list(ports)}}


def test_a_service_leads_to_a_ready_pod_with_its_labels() -> None:
    pods = [
        ready_pod("a", "10.1.0.1", ready="False", app="x"),
        ready_pod("b", "10.1.0.2", app="y"),
        ready_pod("d", "10.1.0.4", app="x"),
        ready_pod("c", "10.1.0.3", app="x", more="labels"),
    ]
    by_name = service({"name": "http", "port": 80, "targetPort": "web"})
    assert service_address(by_name, pods, "80", "s:80") == ("10.1.0.3", "8080")
    assert service_address(by_name, pods, "http", "s:http") == ("10.1.0.3", "8080")
    assert service_address(service({"port": 80}), pods, "", "s") == ("10.1.0.3", "80")
    pods[3]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert service_address(by_name, pods, "80", "s:80") == ("10.1.0.4", "8080")


@pytest.mark.parametrize(
    ("pods", "port", "message"),
    [
        ([], "80", 'no endpoints available for service "s"'),
        ([ready_pod("c", "10.1.0.3", app="x")], "81", 'no service port 81 found for service "s"'),
        (
            [ready_pod("c", "10.1.0.3", app="x")],
            "other",
            'no endpoints available for service "s:other"',
        ),
    ],
)
def test_a_service_without_a_place(pods: list[dict[str, Any]], port: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        service_address(service({"name": "http", "port": 80}), pods, port, f"s:{port}")
    assert (caught.value.code, caught.value.message) == (503, message)


def test_which_container_is_meant() -> None:
    one = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    assert container_of(one, "") == "c"
    two = {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "c"}, {"name": "d"}],
            "initContainers": [{"name": "i"}],
            "ephemeralContainers": [{"name": "e"}],
        },
    }
    assert container_of(two, "i") == "i"
    assert container_of(two, "e") == "e"
    wanted = "a container name must be specified for pod p, choose one of: [i c d e]"
    with pytest.raises(StatusError) as caught:
        container_of(two, "")
    assert (caught.value.code, caught.value.message) == (400, wanted)
    with pytest.raises(StatusError) as caught:
        container_of(two, "x")
    assert caught.value.message == "container x is not valid for pod p"


def test_the_query_of_a_log() -> None:
    params = {
        "container": "c",
        "follow": "true",
        "previous": "false",
        "tailLines": "0",
        "limitBytes": "5",
        "sinceTime": "2026-01-02T03:04:05.678+02:00",
        "pretty": "true",
    }
    assert log_query(params, "p") == [
        ("follow", "true"),
        ("limitBytes", "5"),
        ("sinceTime", "2026-01-02T03:04:05+02:00"),
        ("stream", "All"),
        ("tailLines", "0"),
    ]


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        (
            {"tailLines": "-1"},
            422,
            "tailLines: Invalid value: -1: must be greater than or equal to 0",
        ),
        ({"limitBytes": "0"}, 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "0"}, 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"sinceSeconds": "1", "sinceTime": "2026-01-02T03:04:05Z"},
            422,
            ": Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ({"stream": "Both"}, 422, 'stream: Unsupported value: "Both"'),
        (
            {"stream": "Stdout", "tailLines": "1"},
            422,
            ": Forbidden: `tailLines` and specific `stream` are mutually exclusive for now",
        ),
        ({"tailLines": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"sinceTime": "now"}, 400, 'parsing time "now"'),
    ],
)
def test_wrong_queries_of_a_log(params: dict[str, str], code: int, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        log_query(params, "p")
    assert caught.value.code == code
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        (400, 400, "BadRequest", "text"),
        (500, 500, "InternalError", "Internal error occurred: text"),
        (
            404,
            404,
            "NotFound",
            "the server could not find the requested resource ( pods/log p)",
        ),
        (
            401,
            401,
            "Unauthorized",
            "the server has asked for the client to provide credentials ( pods/log p)",
        ),
        (403, 403, "Forbidden", "text ( pods/log p)"),
        (
            502,
            502,
            "InternalError",
            'an error on the server ("text") has prevented the request from succeeding '
            "( pods/log p)",
        ),
        (
            307,
            307,
            "",
            "the server responded with the status code 307 but did not return more information "
            "( pods/log p)",
        ),
    ],
)
def test_refusals_of_logs(status: int, code: int, reason: str, message: str) -> None:
    found = refusal_of_log(status, "p", "text")
    assert (found.code, found.reason, found.message) == (code, reason, message)


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("/a?b=1", "/p/a?b=1"),
        ("/p/a", "/p/a"),
        ("http://10.0.0.1:80/a", "/p/a"),
        ("http://elsewhere/a", "http://elsewhere/a"),
        ("a/b", "a/b"),
    ],
)
def test_redirections_lead_through_the_server(location: str, wanted: str) -> None:
    assert through(location, "/p", ("10.0.0.1:80",)) == wanted


# -- the place, by the objects of a server -------------------------------------------------------


async def place(
    api: FakeApi, path: str, *query: tuple[str, str], method: str = "GET"
) -> Place | tuple[int, str]:
    """The place, or the refusal's code and message."""
    passed = passed_on(path)
    assert passed is not None
    try:
        return await api.place_of(method, path, passed, query)
    except StatusError as error:
        return error.code, error.message


async def with_pod(**more: Any) -> FakeApi:
    api = FakeApi()
    await create(api, NODES, node(("InternalIP", "10.0.0.1"), port=1))
    await create(api, PODS, pod(**more))
    return api


async def test_exec_attach_and_port_forward_go_to_the_kubelet_with_its_words() -> None:
    api = await with_pod()
    query = [
        ("command", "b"),
        ("command", "a"),
        ("stdout", "true"),
        ("stdin", "false"),
        ("tty", "1"),
    ]
    found = await place(api, f"{POD_A}/exec", *query)
    assert isinstance(found, Place)
    assert (found.scheme, found.address) == ("https", "10.0.0.1:1")
    container = pod()["spec"]["containers"][0]["name"]
    wanted = f"/exec/default/a/{container}?command=b&command=a&output=1&tty=1"
    assert found.target == wanted
    found = await place(api, f"{POD_A}/attach", ("stderr", "true"), method="POST")
    assert isinstance(found, Place)
    assert found.target == f"/attach/default/a/{container}?error=1"
    found = await place(api, f"{POD_A}/portforward", ("ports", "1"), ("ports", "2"))
    assert isinstance(found, Place)
    assert found.target == "/portForward/default/a?port=1%2C2"


async def test_a_log_of_a_pod_without_a_node_is_nowhere() -> None:
    api = await with_pod(node=None)
    found = await place(api, f"{POD_A}/log")
    assert isinstance(found, Place)
    assert found.host == ""
    assert await place(api, f"{POD_A}/exec") == (400, "pod a does not have a host assigned")


async def test_nothing_there() -> None:
    api = await with_pod(node="other")
    assert await place(api, f"{POD_A}/log") == (404, 'nodes "other" not found')
    missing = "/api/v1/namespaces/default/pods/b/log"
    assert await place(api, missing) == (404, 'pods "b" not found')
    assert await place(api, "/api/v1/nodes/x/proxy/") == (404, 'nodes "x" not found')


async def test_a_node_s_pages_are_the_kubelet_s_unless_another_port_is_named() -> None:
    api = await with_pod()
    found = await place(api, "/api/v1/nodes/n:1/proxy/pods")
    assert found == Place("https", "10.0.0.1", 1, "/pods")
    other = Place("http", "10.0.0.1", 10255, "/pods", kubelet=False)
    assert await place(api, "/api/v1/nodes/n:10255/proxy/pods") == other


async def test_requests_that_are_passed_on_are_recorded_and_struck_by_faults() -> None:
    api = await with_pod()
    with api.fails("GET", "/log$", 503, message="not now"):
        assert await place(api, f"{POD_A}/log", ("follow", "true")) == (503, "not now")
    record = api.requests()[-1]
    assert (record.path, record.status) == (f"{POD_A}/log", 503)
    assert record.params == {"follow": "true"}


async def test_in_process_they_are_refused_with_a_reason() -> None:
    api = await with_pod()
    answer = await api.request("GET", f"{POD_A}/log")
    assert (answer.status, answer.body["reason"]) == (501, "NotImplemented")
    assert "on a socket only" in answer.body["message"]


async def test_they_are_in_the_list_of_resources() -> None:
    listed = await get(FakeApi(), "/api/v1")
    rows = {row["name"]: row for row in listed["resources"]}
    assert rows["pods/exec"]["kind"] == "PodExecOptions"
    assert rows["pods/log"]["verbs"] == ["get"]
    assert rows["nodes/proxy"]["namespaced"] is False

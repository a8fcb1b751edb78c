"""Which path leads where on which port, and what is answered where there is nothing (SRV-002,
SRV-010)."""

from __future__ import annotations

from typing import Any

import pytest

from kubeobjects.structs import replace
from refkubelet.config import KubeletConfiguration
from refkubelet.server.common.exchange import Answer
from refkubelet.server.common.routes import Route, healthz_routes, main_routes, read_only_routes
from refkubelet.server.request_line import BadRequest, path_of, query_of

CHECKS = ("ping", "syncloop")
MAIN = main_routes(KubeletConfiguration(), CHECKS)
READ_ONLY = read_only_routes(CHECKS)
HTML = "text/html; charset=utf-8"
OF = {"namespace": "ns", "pod": "p"}
NO_PAGE = (404, "404 page not found\n")
NO_ROUTE = (404, "404: Page Not Found")
WRONG_METHOD = (405, "405: Method Not Allowed")
DEBUG_DISABLED = (405, "Debug endpoints are disabled.\n")


def told(found: Route | Answer) -> tuple[int, str]:
    assert isinstance(found, Answer)
    return found.status, found.body.decode()


def main_with(**switches: Any) -> Any:
    return main_routes(replace(KubeletConfiguration(), **switches), CHECKS)


@pytest.mark.parametrize(
    ("request_line", "handler", "parts"),
    [
        ("GET /pods", "pods", {}),
        ("GET /pods/", "pods", {}),
        ("GET /stats/summary", "summary", {}),
        ("POST /stats/summary", "summary", {}),
        ("GET /metrics", "metrics", {}),
        ("PUT /metrics", "metrics", {}),
        ("GET /metrics/cadvisor", "metrics/cadvisor", {}),
        ("GET /metrics/resource", "metrics/resource", {}),
        ("GET /metrics/probes", "metrics/probes", {}),
        ("GET /healthz", "healthz", {}),
        ("GET /healthz/ping", "healthz/one", {}),
        ("GET /healthz/syncloop", "healthz/one", {}),
        ("GET /configz", "configz", {}),
        ("GET /runningpods/", "runningpods", {}),
        ("GET /containerLogs/ns/p/c", "containerLogs", {**OF, "container": "c"}),
        ("POST /run/ns/p/c", "run", {**OF, "container": "c"}),
        ("POST /run/ns/p/u/c", "run", {**OF, "uid": "u", "container": "c"}),
        ("GET /exec/ns/p/c", "exec", {**OF, "container": "c"}),
        ("POST /exec/ns/p/u/c", "exec", {**OF, "uid": "u", "container": "c"}),
        ("POST /attach/ns/p/c", "attach", {**OF, "container": "c"}),
        ("GET /attach/ns/p/u/c", "attach", {**OF, "uid": "u", "container": "c"}),
        ("POST /portForward/ns/p", "portForward", OF),
        ("GET /portForward/ns/p/u", "portForward", {**OF, "uid": "u"}),
        ("POST /checkpoint/ns/p/c", "checkpoint", {**OF, "container": "c"}),
        ("GET /logs/", "logs", {"path": ""}),
        ("GET /logs/a/b.log", "logs", {"path": "a/b.log"}),
        ("GET /logs/a/", "logs", {"path": "a"}),
    ],
)
def test_paths_of_the_main_port_SRV_010(
    request_line: str, handler: str, parts: dict[str, str]
) -> None:
    method, path = request_line.split()
    assert MAIN.find(method, path) == Route(handler, parts)


@pytest.mark.parametrize(
    ("request_line", "wanted"),
    [
        ("POST /pods", WRONG_METHOD),
        ("PUT /stats/summary", WRONG_METHOD),
        ("GET /run/ns/p/c", WRONG_METHOD),
        ("PUT /exec/ns/p/c", WRONG_METHOD),
        ("DELETE /attach/ns/p/c", WRONG_METHOD),
        ("PUT /portForward/ns/p", WRONG_METHOD),
        ("POST /containerLogs/ns/p/c", WRONG_METHOD),
        ("POST /runningpods/", WRONG_METHOD),
        ("POST /logs/", WRONG_METHOD),
        ("GET /checkpoint/ns/p/c", WRONG_METHOD),
        ("GET /pods/more", NO_ROUTE),
        ("GET /stats", NO_ROUTE),
        ("GET /stats/other", NO_ROUTE),
        ("GET /exec/ns/p", NO_ROUTE),
        ("GET /exec/ns/p/u/c/more", NO_ROUTE),
        ("GET /portForward/ns/p/u/more", NO_ROUTE),
        ("GET /containerLogs/ns/p/u/c", NO_ROUTE),
        ("POST /checkpoint/ns/p/u/c", NO_ROUTE),
        ("GET /runningpods/more", NO_ROUTE),
        ("GET /", NO_PAGE),
        ("GET /podsandmore", NO_PAGE),
        ("GET /metrics/other", NO_PAGE),
        ("GET /healthz/other", NO_PAGE),
    ],
)
def test_what_has_no_handler_SRV_010(request_line: str, wanted: tuple[int, str]) -> None:
    method, path = request_line.split()
    assert told(MAIN.find(method, path)) == wanted


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("//pods", "/pods"),
        ("/logs/../pods", "/pods"),
        ("/logs/a//b", "/logs/a/b"),
        ("/logs/./a/", "/logs/a/"),
        ("/..", "/"),
        ("/logs", "/logs/"),
        ("/runningpods", "/runningpods/"),
        ("/logs//a b<", "/logs/a%20b%3C"),
        ("/logs//a'", "/logs/a%27"),
    ],
)
def test_other_spellings_of_a_path_lead_to_it_SRV_010(path: str, place: str) -> None:
    assert MAIN.find("GET", path) == Answer(
        status=307,
        body=f'<a href="{place}">Temporary Redirect</a>.\n\n'.encode(),
        content_type=HTML,
        headers={"Location": place},
    )


DEBUG_PATHS = ("run", "exec", "attach", "portForward", "containerLogs", "runningpods", "logs")


@pytest.mark.parametrize("routes", [READ_ONLY, main_with(enable_debugging_handlers=False)])
def test_without_debugging_there_is_no_way_in_SRV_010(routes: Any) -> None:
    for root in (*DEBUG_PATHS, "debug/pprof"):
        assert told(routes.find("GET", f"/{root}/")) == DEBUG_DISABLED
        assert told(routes.find("POST", f"/{root}/a/b/c")) == DEBUG_DISABLED
    for path in ("/configz", "/checkpoint/a/b/c", "/debug/flags/v", "/run", "/logsandmore/"):
        assert told(routes.find("GET", path)) == NO_PAGE
    assert routes.find("GET", "/pods") == Route("pods", {})
    assert routes.find("GET", "/stats/summary") == Route("summary", {})
    for name in ("", "/cadvisor", "/resource", "/probes"):
        assert routes.find("GET", f"/metrics{name}") == Route(f"metrics{name}", {})
    assert routes.find("GET", "/healthz") == Route("healthz", {})
    assert routes.find("GET", "/healthz/ping") == Route("healthz/one", {})


def test_single_switches_SRV_010() -> None:
    no_logs = main_with(enable_system_log_handler=False)
    assert told(no_logs.find("GET", "/logs/x")) == (405, "logs endpoint is disabled.\n")
    assert no_logs.find("GET", "/runningpods/") == Route("runningpods", {})
    no_profiles = main_with(enable_profiling_handler=False)
    assert told(no_profiles.find("GET", "/debug/pprof/heap")) == (
        405,
        "profiling endpoint is disabled.\n",
    )
    assert no_profiles.find("GET", "/logs/x") == Route("logs", {"path": "x"})
    assert told(MAIN.find("GET", "/debug/pprof/heap")) == NO_PAGE
    without = main_with(feature_gates={"ContainerCheckpoint": False})
    assert told(without.find("POST", "/checkpoint/ns/p/c")) == NO_PAGE
    assert without.find("GET", "/logs/x") == Route("logs", {"path": "x"})


def test_the_healthz_port_has_two_paths_SRV_002() -> None:
    on = healthz_routes()
    assert on.find("GET", "/healthz") == on.find("GET", "/healthz/ping") == Route("alive", {})
    for path in ("/healthz/syncloop", "/pods", "/logs/", "/exec/a/b/c"):
        assert told(on.find("GET", path)) == NO_PAGE


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/pods", "/pods"),
        ("/pods?x=/y", "/pods"),
        ("/pods#x", "/pods"),
        ("//pods", "//pods"),
        ("http://node:10250/pods?x", "/pods"),
        ("/logs/%C3%A4%2fb", "/logs/ä/b"),
        ("/a%2541", "/a%41"),
    ],
)
def test_the_path_of_a_target(target: str, path: str) -> None:
    assert path_of(target) == path


@pytest.mark.parametrize(
    ("target", "words"),
    [
        *(
            (target, "the path cannot be decoded")
            for target in ("/%zz", "/%4", "/a%", "/%+1", "/%ff")
        ),
        ("http://[::1/pods", "the path cannot be decoded"),
        *((target, "the path is none") for target in ("/a%00b", "*", "pods", "http://node", "")),
    ],
)
def test_targets_without_a_path(target: str, words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        path_of(target)
    assert str(caught.value) == words


def test_the_query_of_a_target() -> None:
    assert query_of("/a") == query_of("/a?") == ()
    assert query_of("/a?x=1&y=&z&x=%C3%A4+b#end?w=2") == (
        *(("x", "1"), ("y", ""), ("z", ""), ("x", "ä b")),
    )
    assert query_of("/a?x=b?c") == (("x", "b?c"),)
    assert len(query_of("/a?" + "&".join(["x"] * 10_000))) == 10_000
    with pytest.raises(BadRequest, match="the query has too many fields"):
        query_of("/a?" + "&".join(["x"] * 10_001))

"""Scenarios on refkubelet: they pass, they fail with what was expected and seen, and they are
errors where they prove nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubelet_conformance.features import Feature
from kubelet_conformance.harness.runs.case_run import Breach, Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.known import with_known_bugs
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.scenarios.case import case_of, needs_of
from kubelet_conformance.scenarios.reading import read_scenario
from kubeobjects.strict.values import parse_yaml

HEAD = "id: tried\ntitle: It is tried\n"
RUNS = """\
pods:
  web: {}
steps:
  - apply: web
  - wait: {container: {pod: web, state: running}}
  - mark: up
"""


def played(text: str, head: str = HEAD) -> Result:
    scenario = read_scenario(parse_yaml(head + text, "tried.yaml"))
    return run_virtual_case(case_of(scenario, Path("tried.yaml")), Choice())


def expected(*lines: str, before: str = RUNS) -> Result:
    """What comes of these expectations after these steps."""
    entries = "".join(f"  - {line}\n    says: It is not so\n" for line in lines)
    return played(f"{before}expect:\n{entries}")


HOLDS = (
    "calls: {method: StartContainer, pod: web, count: 1}",
    "calls: {method: CreateContainer, request: {config: {image: {user_specified_image: '*:1'}}}}",
    "order: {calls: [{method: RunPodSandbox}, {method: StartContainer, container: main}]}",
    "gap: {from: {call: {method: RunPodSandbox}}, to: {mark: up}, is: 1ms..3s}",
    "pod: {name: web, phase: [Pending, Running], ip: true, conditions: {Ready: 'True'}}",
    "pod: {name: web, from: api, has: {status: {containerStatuses: [{started: true}]}}}\n"
    "    within: 20s",
    "container: {pod: web, state: running, restarts: 0, ready: true, exit_code: 0}",
    "history: {pod: web, container: main, has: [running], has_not: ['terminated(*)']}",
    "event: {reason: Started, pod: web, message: '*ontainer*', count: 1}",
    "node: {conditions: {MemoryPressure: 'False'}, no_taints: [x]}",
    "requests: {method: PATCH, pod: web, subresource: status, status: 200}\n    within: 20s",
    "containers: {pod: web, state: running, count: 1}",
    "sandboxes: {pod: web, state: ready, attempt: 0, count: 1}",
    "images: {name: 'localhost/busybox:1', count: 1}",
    "files: {at: logs, path: '*_{name}_{uid}/main/0.log', pod: web, count: 1}",
    'files: {at: manifests, path: web.yaml, text: \'*"name": "web"*\'}',
    "cgroup: {pod: web, cpu: '>=1', cpu_quota_us: '>100000'}",
    "cgroup: {path: [kubepods, burstable, gone], there: false}",
    "stats: {has: {node: {nodeName: node}}}",
    "any_of: [{pod: {name: web, phase: Failed}}, {pod: {name: web, phase: Running}}]",
    "all_of: [{pod: {name: web}}, {container: {pod: web, state: running}}]",
    "never: {container: {pod: web, state: terminated}}\n    during: 3s",
)


@pytest.mark.parametrize("line", HOLDS)
def test_conditions_that_hold(line: str) -> None:
    line = line.replace(", exit_code: 0", "")
    result = expected("calls: {method: RunPodSandbox}", line, before=f"needs: [api]\n{RUNS}")
    assert (result.outcome, result.detail) == (Outcome.PASSED, "")


@pytest.mark.parametrize(
    ("line", "wanted", "seen"),
    [
        ("calls: {method: StartContainer, count: 2}", "calls: method StartContainer, count 2",
         "1: StartContainer main/0 at 0."),
        ("calls: {method: StartContainer, pod: web, attempt: 1}", "attempt 1",
         "0 that fit; others: 1: StartContainer main/0 at"),
        ("order: {calls: [{method: StartContainer}, {method: RunPodSandbox}]}", "order: ",
         "then no (method RunPodSandbox)"),
        ("gap: {from: {call: {method: RunPodSandbox}}, to: {call: {method: StopContainer}},"
         " is: 1s..2s}", "is 1s..2s", "no such moment: call (method StopContainer, nth 1"),
        ("pod: {name: web, phase: Failed}", "pod: name web", "Running; main=running ready"),
        ("container: {pod: web, restarts: '>=1'}", "restarts >=1", "running, restarts 0"),
        ("history: {pod: web, container: main, has_not: [running]}", "[running]", "running"),
        ("event: {reason: Killing}", "event: reason Killing", "0 that fit; others: "),
        ("sandboxes: {pod: web, count: 2}", "sandboxes: pod web, count 2", "1 of 1: web-node"),
        ("files: {at: manifests, path: x.yaml}", "files: path x.yaml", "0 of 0"),
        ("cgroup: {pod: web, cpu: '>5000'}", "cpu >5000", "cpu 1"),
        ("never: {pod: {name: web}}\n    during: 3s", "never pod: name web", "Running"),
        ("any_of: [{pod: {name: web, phase: Failed}}, {event: {reason: Killing}}]",
         "from kubelet, there true, phase Failed or event: reason Killing", "; and "),
    ],
)  # fmt: skip
def test_conditions_that_do_not_hold(line: str, wanted: str, seen: str) -> None:
    result = expected(line, before=f"needs: [api]\n{RUNS}")
    assert result.outcome is Outcome.FAILED
    said, told, observed, *_ = result.detail.splitlines()
    assert said == "It is not so"
    assert told.startswith("expected: ")
    assert wanted in told
    assert "(tried.yaml:" in told
    assert observed.startswith("seen: ")
    assert seen in observed


def test_what_must_never_be_is_seen_when_it_is() -> None:
    result = played(
        f"{RUNS}  - kill: {{pod: web}}\n  - wait: {{container: {{pod: web, restarts: 1}}}}\n"
        "never:\n  - calls: {method: StartContainer, count: '>1'}\n    says: It ended\n"
    )
    assert result.outcome is Outcome.FAILED
    assert result.detail.startswith("It ended\nexpected: calls: method StartContainer, count >1")


def test_a_step_that_cannot_be_done_is_a_failure() -> None:
    result = played(
        "pods: {web: {}}\nsteps: [{apply: web}, {exit: {pod: web}}]\n"
        "expect: [{pod: {name: web}, says: no}]\n"
    )
    assert result.outcome is Outcome.FAILED
    assert result.detail.startswith("expected: step exit can be done (tried.yaml:4)\nseen:     no ")


def test_a_rule_that_is_never_hit_is_an_error() -> None:
    fault = "  - fault: {on: StopContainer, fails: {}}\n"
    result = expected("pod: {name: web}", before=RUNS + fault)
    assert result.outcome is Outcome.ERROR
    assert "tried.yaml:9:12: steps[3].fault: this was never hit" in result.detail
    maybe = fault.replace("fails", "maybe: true, fails")
    assert expected("pod: {name: web}", before=RUNS + maybe).outcome is Outcome.PASSED


STEPS = """\
kubelet: {maxPods: 20}
pods:
  web:
    spec: {restartPolicy: Always, terminationGracePeriodSeconds: 3}
    does: {main: [{exits: {code: 3, after_s: 2s}}, {stops: {code: 0, after_s: 1s}}]}
  job: {spec: {restartPolicy: Never}, does: {main: {exits: {code: 0, after_s: 1s}}}}
  two: {name: web-two, spec: {terminationGracePeriodSeconds: 1}}
steps:
  - apply: {pod: web, file: first.yaml, set: {metadata: {labels: {app: x}}}}
  - create: job
  - create: {pod: two, set: {spec: {priority: 5}}}
  - wait:
      container:
        {pod: web, restarts: 1, state: running, has: {lastState: {terminated: {exitCode: 3}}}}
      within: 20s
  - wait: {pod: {name: job, from: api, phase: Succeeded}}
  - mark: one
  - edit: {pod: web, set: {spec: {containers: [{name: main, image: "localhost/busybox:2"}]}}}
  - wait:
      calls: {method: CreateContainer, pod: web, since: one, image: "*busybox:2"}
      within: 30s
  - edit: {pod: two, set: {metadata: {labels: {app: y}}}}
  - patch: {pod: two, set: {metadata: {annotations: {a: b}}}}
  - wait: {pod: {name: two, has: {metadata: {labels: {app: y}, annotations: {a: b}}}}}
  - kubelet: {do: restart, set: {maxPods: 30}}
  - wait: {container: {pod: two, state: running}}
  - fault: {on: StopContainer, pod: two, label: slow, hangs: {}}
  - delete: {pod: two, grace: 1}
  - wait: {calls: {method: StopContainer, pod: two}}
  - release: slow
  - wait: {pod: {name: two, from: api, there: false}, within: 20s}
  - api: down
  - advance: 5s
  - api: up
  - runtime: away
  - advance: 2s
  - runtime: back
  - runtime: crash
  - advance: 1s
  - runtime: restart
  - write_file: {file: .hidden.yaml, text: nothing}
  - rename_file: {file: first.yaml, to: second.yaml}
  - remove_file: second.yaml
  - wait: {pod: {name: web, there: false}, within: 40s}
  - create_object: {plural: configmaps, manifest: {metadata: {name: c}, data: {a: b}}}
  - delete_object: {plural: configmaps, name: c}
  - patch_node: {set: {metadata: {labels: {x: y}}}}
  - expect: {node: {has: {metadata: {labels: {x: y}}}}, within: 20s, says: no label}
  - file: {path: "notes/{name}", pod: web, text: hello}
  - expect: {files: {path: "notes/*", text: hello, count: 1}, says: no file}
  - file: {path: notes, remove: true}
  - expect: {files: {path: notes, count: 0}, says: still there}
  - reboot: true
expect:
  - calls: {method: RemovePodSandbox, count: 0, failed: true}
    during: 1s
    says: it failed
"""


def test_the_steps_do_what_they_say() -> None:
    result = played(STEPS)
    assert (result.outcome, result.detail) == (Outcome.PASSED, "")


def test_needs_follow_from_the_words() -> None:
    scenario = read_scenario(parse_yaml(HEAD + STEPS, "tried.yaml"))
    assert case_of(scenario, Path("tried.yaml")).needs == {
        *(Feature.API, Feature.RESTART, Feature.FAULTS, Feature.BEHAVIORS),
    }
    plain = read_scenario(parse_yaml(f"{HEAD}{RUNS}  - advance: 3m\nnever: []\n" + (
        "expect: [{cgroup: {pod: web}, says: no}]\n"), "tried.yaml"))  # fmt: skip
    assert case_of(plain, Path("x")).needs == {Feature.CGROUPS, Feature.VIRTUAL_TIME}


def needs(text: str) -> set[Feature]:
    head = f"{HEAD}{text}expect: [{{pod: {{name: web}}, says: no}}]\n"
    return set(needs_of(read_scenario(parse_yaml(head, "tried.yaml"))))


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("pods: {web: {spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: main,"
         " volumeMounts: [{name: v, mountPath: /v, subPath: part}]}]}}}\nsteps: [{apply: web}]\n",
         Feature.MOUNTS),
        ("pods: {web: {spec: {volumes: [{name: v, emptyDir: {medium: Memory}}]}}}\n"
         "steps: [{apply: web}]\n", Feature.MOUNTS),
        ("kubelet: {hairpinMode: none}\npods: {web: {}}\nsteps: [{apply: web}]\n",
         Feature.ALL_FIELDS),
        ("kubelet: {featureGates: {ContainerStopSignals: true}}\npods: {web: {}}\n"
         "steps: [{apply: web}]\n", Feature.ALL_FIELDS),
        ("pods: {web: {}}\nsteps: [{create: web}, {patch: {pod: web, subresource: resize, set:"
         " {spec: {containers: [{name: main, resources: {requests: {cpu: 1m}}}]}}}}]\n",
         Feature.CGROUPS),
        ("pods: {web: {}}\nsteps: [{apply: web}, {wait: {files: {at: links, path: x}}}]\n",
         Feature.NODE_RESOURCES),
        ("node: {}\npods: {web: {}}\nsteps: [{apply: web}]\n", Feature.NODE_RESOURCES),
    ],
)  # fmt: skip
def test_what_needs_another_kubelet_or_machine(text: str, feature: Feature) -> None:
    """A word that does nothing here is a skip with its reason."""
    assert feature in needs(text)
    plain = needs("pods: {web: {}}\nsteps: [{apply: web}]\n")
    assert plain == set()


def test_refkubelet_in_virtual_time_has_no_mounts_and_not_all_fields() -> None:
    assert not {Feature.MOUNTS, Feature.ALL_FIELDS} & Choice().features
    given = Choice(kubelet="/usr/bin/kubelet").features
    assert Feature.ALL_FIELDS in given
    assert (Feature.MOUNTS in given) is (os.geteuid() == 0)


def test_what_a_request_says() -> None:
    """The headers of a request reach the kubelet."""
    head = (
        "kubelet: {authentication: {anonymous: {enabled: false}, webhook: {enabled: true}},"
        " authorization: {mode: AlwaysAllow}}\nneeds: [api]\npods: {web: {}}\n"
        "steps: [{apply: web}, {advance: 2s}]\n"
    )
    ask = "{ask: {path: /pods, headers: {Authorization: Basic x}}, status: 401}"
    assert played(f"{head}expect: [{{answer: {ask}, says: no}}]\n").outcome is Outcome.PASSED


def test_requests_are_those_of_the_kubelet() -> None:
    """What a step sends is not among them."""
    result = played(
        f"needs: [api]\n{RUNS}  - create_object: {{plural: configmaps, manifest: {{metadata:"
        " {name: c}}}\n  - advance: 1s\n"
        "expect: [{requests: {method: POST, path: configmaps, count: 0}, says: counted}]\n"
    )
    assert (result.outcome, result.detail) == (Outcome.PASSED, "")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("pods: {web: {}, two: {does: {main: {exits: {}}}}}\nsteps:\n  - kubelet: stop\n"
         "  - apply: two\n  - apply: web\n  - advance: 5s\n", "pods.two.does.main"),
        (f"{RUNS}  - pulls: {{\"registry.example/*\": {{}}}}\n", "steps[3]: registry.example/*: "),
        (f"needs: [api]\n{RUNS}  - api_fault: {{on: POST, path: /nothing, fails: {{}}}}\n",
         "steps[3].api_fault"),
    ],
)  # fmt: skip
def test_what_has_never_acted_is_an_error(text: str, place: str) -> None:
    result = played(f"{text}expect: [{{files: {{at: manifests, path: web.yaml}}, says: no}}]\n")
    assert result.outcome is Outcome.ERROR
    assert place in result.detail
    assert "this was never hit" in result.detail


def test_a_bug_is_known_on_the_kubelets_that_have_it() -> None:
    head = HEAD + "upstream: [1234]\naffected: {since: 1.25, fixed: [1.30.3, 1.31], source: x}\n"
    text = f"{RUNS}expect: [{{pod: {{name: web, phase: Failed}}, says: It runs}}]\n"
    failed = played(text, head)
    for release, outcome in (
        ((1, 30, 2), Outcome.KNOWN_BUG),
        ((1, 30, 3), Outcome.FAILED),
        ((1, 24, 0), Outcome.FAILED),
        (None, Outcome.FAILED),
    ):
        assert with_known_bugs(failed, release).outcome is outcome
    passed = played(text.replace("Failed", "Running"), head)
    strict = with_known_bugs(passed, (1, 26, 1))
    assert strict.outcome is Outcome.FAILED
    assert "It is tried (kubernetes/kubernetes#1234, fixed in 1.30.3, 1.31)" in strict.detail


@pytest.mark.parametrize(
    ("text", "breach"),
    [
        (f"{RUNS}  - wait: {{pod: {{name: web, phase: Failed}}}}\n", Breach.OTHER),
        (f"{RUNS}  - wait: {{pod: {{name: web, phase: Failed}}, bug: true}}\n", Breach.EXPECTED),
        (f"{RUNS}  - expect: {{pod: {{name: web, phase: Failed}}, says: x}}\n", Breach.EXPECTED),
        (f"{RUNS}  - expect: {{pod: {{name: web}}, says: x, bug: true}}\n"
         "  - expect: {pod: {name: web, phase: Failed}, says: x}\n", Breach.OTHER),
        (f"{RUNS}  - exit: {{pod: web, container: main}}\n"
         "  - exit: {pod: web, container: main}\n", Breach.OTHER),
        (f"{RUNS}never: [{{pod: {{name: web, phase: Running}}, says: x}}]\n", Breach.EXPECTED),
    ],
)  # fmt: skip
def test_a_failure_is_the_bug_where_the_scenario_says_so(text: str, breach: Breach) -> None:
    """What is expected, or what `bug` names; neither a wait nor a step that cannot be done."""
    head = f"{HEAD}affected: {{source: x}}\n"
    result = played(f"{text}expect: [{{pod: {{name: web}}, says: x}}]\n", head)
    assert (result.outcome, result.breach) == (Outcome.FAILED, breach)

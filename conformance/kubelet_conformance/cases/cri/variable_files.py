"""What a file of variables may look like, and what is wrong with it (LIFE-137.5)."""

from typing import Any, Final

from kubelet_conformance.cases.cri.common import waiting
from kubelet_conformance.cases.cri.variables import seen_by
from kubelet_conformance.cases.lifecycle.starting.environment import variable
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

GOOD: Final = """\
# how fast

MODE='fast' # for now
   # further in
  INDENTED='yes'\r
EMPTY=
NOTHING=''
BLANK= 'no value'
TWO='a
b'
HASH='# no comment'
MODE='slow'
EQUAL='a=b'
""".replace("EMPTY=\n", "EMPTY= \n")
VALUES: Final = {
    "MODE": "fast",
    "INDENTED": "yes",
    "TWO": "a\nb",
    "HASH": "# no comment",
    "EQUAL": "a=b",
}
WITHOUT: Final = ("EMPTY", "NOTHING", "BLANK")
"""Names whose value is empty: as if they were not there."""
BAD: Final = {
    "no-equal": "MODE",
    "no-name": "='x'\nMODE='x'",
    "blank-before": "MODE ='x'",
    "no-quotes": "MODE=fast",
    "other-quotes": 'MODE="fast"',
    "no-value": "MODE=",
    "not-closed": "MODE='x\ny\n",
    "behind": "MODE='x' y",
    "earlier": "bad\nMODE='x'",
}
"""Files that give MODE no value, by name."""
LATER: Final = "later"
"""The name of one that gives it a value before its bad line."""


def of_file(name: str, key: str) -> dict[str, Any]:
    """A variable of that name with the value that a file has for it."""
    return variable(key, fileKeyRef={"volumeName": "shared", "path": name, "key": key})


@conformance(id="cri-env-file-forms", rules=["LIFE-137.5"], needs=[Feature.STATUS], since="1.35")
async def the_lines_of_a_file_have_one_form(node: Node) -> None:
    """A line is a name and a value in single quotes, which may go over several lines; blanks before
    it, comments, and carriage returns do not count, and of two values the first does; one that is
    empty is none. Of a file with another line what stands before it counts; a variable from behind
    it is an error."""
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    setup = container("setup", exits(0, after_s=4), volumeMounts=mounts)
    good = container("good", env=[of_file("good", key) for key in VALUES])
    others = [container(name, env=[of_file(name, "MODE")]) for name in (LATER, *BAD)]
    others += [container(key.lower(), env=[of_file("good", key)]) for key in WITHOUT]
    volumes: list[dict[str, Any]] = [{"name": "shared", "emptyDir": {}}]
    await node.apply_static(pod("web", good, *others, init=[setup], volumes=volumes))
    await node.wait_running("web", "setup")
    files = {"good": GOOD, LATER: "MODE='early'\nbad\n", **BAD}
    for name, text in files.items():
        node.machine.write_volume_file("web", "shared", name, text)
    for name in BAD:
        message = await waiting(node, "web", name, "CreateContainerConfigError")
        expect_equal(node, message, "couldn't parse env file", f"message of {name}")
    for key in WITHOUT:
        message = await waiting(node, "web", key.lower(), "CreateContainerConfigError")
        words = f'environment variable key "{key}" not found in file '
        expect(node, message.startswith(words), words, message)
    await node.run_until(
        lambda: all(node.count("StartContainer", container=name) for name in ("good", LATER)),
        within_s=limits.START_S,
        what="the others start",
    )
    values = seen_by(node, "good")
    expect_equal(node, {name: values.get(name) for name in VALUES}, VALUES, "variables of good")
    expect_equal(node, seen_by(node, LATER).get("MODE"), "early", "MODE of a file that ends badly")

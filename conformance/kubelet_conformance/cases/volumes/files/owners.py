"""Who may read each projected file: its mode, its owner and its group, for each kind of source."""

import os
import stat
from functools import partial
from typing import Any, Final

from kubelet_conformance.cases.volumes.common import VOLUME, main, wait_files, with_volume
from kubelet_conformance.cases.volumes.files.items import FIELD, projected, with_objects
from kubelet_conformance.cases.volumes.files.tokens import with_account
from kubelet_conformance.cases.volumes.files.trust_bundles import ON, SINCE, bundle
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import Container, PodPlan, container
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

NEEDS: Final = [Feature.API, Feature.STATUS]
LONG: Final = [*NEEDS, Feature.VIRTUAL_TIME]
ME: Final = os.geteuid()
GROUP: Final = os.getgid() if ME else 4321
USER: Final = ME or 2000
"""Only root may give files to others."""
TOKEN: Final = {"serviceAccountToken": {"path": "token"}}
DOWNWARD: Final = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
Owner = tuple[int, int, str]
"""User, group, and permissions in octal digits."""


def of_each_kind(**more: Any) -> dict[str, Any]:
    """A projected volume of every kind of source, each with an item that has a mode of its own and
    one that has none."""
    secret = [{"key": "a", "path": "secret"}, {"key": "b", "path": "below/secret", "mode": 0o711}]
    texts = [{"key": "a", "path": "map"}, {"key": "b", "path": "below/map", "mode": 0}]
    fields = [DOWNWARD, {**FIELD, "path": "below/name", "mode": 0o604}]
    return projected(
        {"secret": {"name": "keys", "items": secret}},
        {"configMap": {"name": "settings", "items": texts}},
        {"downwardAPI": {"items": fields}},
        TOKEN,
        **more,
    )


def owner(node: Node, pod: str, file: str) -> Owner:
    """Whose the file of the pod's volume is, and who may do what; links followed."""
    status = (node.machine.made_volume(pod, VOLUME) / file).stat()
    return status.st_uid, status.st_gid, oct(stat.S_IMODE(status.st_mode))


def owners(node: Node, pod: str, files: dict[str, Owner]) -> dict[str, Owner]:
    """The same for each of the files."""
    return {file: owner(node, pod, file) for file in files}


def robot(name: str, source: dict[str, Any], *containers: Container, **spec: Any) -> PodPlan:
    """A pod of the service account with the volume."""
    return with_volume(name, source, *containers, serviceAccountName="robot", **spec)


def as_user(user: int) -> dict[str, int]:
    """A security context with that user."""
    return {"runAsUser": user}


@conformance(id="volume-modes-of-each-kind", rules=["NODE-205.2", "NODE-205.9"], needs=NEEDS)
async def a_file_has_the_mode_of_its_item_or_of_its_volume(node: Node) -> None:
    """Of each kind of source a file has the mode of its item, also none at all, else that of the
    volume; a token, too, if the pod names no user and no group. The same in volumes of one kind."""
    await with_account(node)
    await with_objects(node)
    group = os.getegid()
    await node.api.create_pod(robot("web", of_each_kind(defaultMode=0o440)))
    await node.wait_running("web")
    modes = {"secret": 0o440, "below/secret": 0o711, "map": 0o440, "below/map": 0}
    modes |= {"name": 0o440, "below/name": 0o604, "token": 0o440}
    expected = {file: (ME, group, oct(mode)) for file, mode in modes.items()}
    expect_equal(node, owners(node, "web", expected), expected, "owners and modes")
    fields = [DOWNWARD, {**FIELD, "mode": 0o604}]
    sources: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
        "map": ({"configMap": {"name": "settings", "defaultMode": 0o640}}, {"a": 0o640}),
        "secret": ({"secret": {"secretName": "keys", "defaultMode": 0o750}}, {"a": 0o750}),
        "downward": (
            {"downwardAPI": {"items": fields, "defaultMode": 0o444}},
            {"name": 0o444, "dir/name": 0o604},
        ),
    }
    for name, (source, modes) in sources.items():
        await node.api.create_pod(robot(name, source))
        await node.wait_running(name)
        expected = {file: (ME, group, oct(mode)) for file, mode in modes.items()}
        expect_equal(node, owners(node, name, expected), expected, f"owners and modes of {name}")


@conformance(
    id="volume-modes-with-group", rules=["NODE-205.9", "NODE-212.1", "NODE-212.2"], needs=NEEDS
)
async def with_a_group_the_token_is_its_own(node: Node) -> None:
    """With fsGroup a token has mode 0600 and, as every file, is readable for the group beside what
    it was; others may read it no more. The group of root is a group, too."""
    await with_account(node)
    await with_objects(node)
    modes = {"secret": "0o644", "below/secret": "0o751", "map": "0o644", "below/map": "0o440"}
    modes |= {"name": "0o644", "below/name": "0o644", "token": "0o640"}
    for name, group in (("own", GROUP), ("root", 0)) if ME == 0 else (("own", GROUP),):
        await node.api.create_pod(robot(name, of_each_kind(), securityContext={"fsGroup": group}))
        await node.wait_running(name)
        expected = {file: (ME, group, mode) for file, mode in modes.items()}
        expect_equal(node, owners(node, name, expected), expected, f"owners with fsGroup {group}")


@conformance(id="volume-token-of-which-user", rules=["NODE-205.9"], needs=NEEDS, alone=True)
async def the_user_of_all_containers_owns_the_token(node: Node) -> None:
    """The user of a token is that of the containers, whose own runAsUser counts before the pod's,
    those of init containers, too; where one has another, or none, nobody owns it. Root is a
    user."""
    await with_account(node)
    group = os.getegid()
    own, other = as_user(USER), as_user(USER + 1 if ME == 0 else 0)
    of_user, nobodys = (USER, group, "0o600"), (ME, group, "0o644")
    second = main("second", securityContext=own)
    named = main(securityContext=own)
    pods: dict[str, tuple[PodPlan, Owner]] = {
        "of-pod": (robot("of-pod", projected(TOKEN), securityContext=own), of_user),
        "of-both": (robot("of-both", projected(TOKEN), named, second), of_user),
        "of-one": (robot("of-one", projected(TOKEN), main(), second), nobodys),
        "before-pod": (
            robot("before-pod", projected(TOKEN), named, securityContext=other),
            of_user,
        ),
        "beside-pod": (
            robot("beside-pod", projected(TOKEN), main(), second, securityContext=other),
            nobodys,
        ),
    }
    first = container("first", exits(0))
    other_first = container("first", exits(0), securityContext=own)
    for name, init, expected in (
        ("init-none", first, nobodys),
        ("init-same", other_first, of_user),
    ):
        pods[name] = (robot(name, projected(TOKEN), named, init=[init]), expected)
    if ME == 0:
        root = robot("of-root", projected(TOKEN), securityContext=as_user(0))
        pods["of-root"] = (root, (0, group, "0o600"))
    for name, (plan, expected) in pods.items():
        await node.api.create_pod(plan)
        await node.run_until(partial(node.running, name), within_s=10, what=f"{name} runs")
        expect_equal(node, owner(node, name, "token"), expected, f"the token of {name}")


@conformance(
    id="volume-owners-after-update", rules=["NODE-205.9", "NODE-206.2", "NODE-212.1"], needs=LONG
)
async def new_content_has_the_same_owners(node: Node) -> None:
    """Only the token is the user's, what other sources give is not, whatever user and group the pod
    has; so it stays when an update writes all files anew."""
    await with_account(node)
    await with_objects(node)
    context = {"runAsUser": USER, "fsGroup": GROUP}
    await node.api.create_pod(
        robot("web", of_each_kind(defaultMode=0o600), securityContext=context)
    )
    await node.wait_running("web")
    expected = dict.fromkeys(("secret", "map", "name"), (ME, GROUP, "0o640"))
    expected["token"] = (USER, GROUP, "0o640")
    expect_equal(node, owners(node, "web", expected), expected, "owners")
    files = node.machine.volume_files("web", VOLUME)
    await node.api.change_object("configmaps", "settings", {"data": {"a": "changed"}})
    await wait_files(node, "web", {**files, "map": "changed"})
    expect_equal(node, owners(node, "web", expected), expected, "owners after the update")


@conformance(
    id="volume-owner-of-bundle",
    rules=["NODE-205.9", "NODE-213.1"],
    needs=NEEDS,
    node_config=ON,
    since=SINCE,
    alone=True,
)
async def trust_bundles_are_the_users_too(node: Node) -> None:
    """A trust bundle belongs to the pod's user, and has mode 0600 then, as it has with a group;
    else it has the mode of the volume."""
    await bundle(node, "one", "A")
    source = projected({"clusterTrustBundle": {"name": "one", "path": "x/one"}}, defaultMode=0o444)
    contexts: dict[str, tuple[dict[str, int], Owner]] = {
        "none": ({}, (ME, os.getegid(), "0o444")),
        "user": ({"runAsUser": USER}, (USER, os.getegid(), "0o600")),
        "group": ({"fsGroup": GROUP}, (ME, GROUP, "0o640")),
    }
    for name, (context, expected) in contexts.items():
        await node.api.create_pod(with_volume(name, source, securityContext=context))
        await node.wait_running(name)
        expect_equal(node, owner(node, name, "x/one"), expected, f"the bundle of {name}")


@conformance(id="volume-owner-of-link", rules=["NODE-205.9"], needs=NEEDS, since="1.36")
async def the_link_to_the_token_is_the_users_too(node: Node) -> None:
    """The name of the token in the volume, a link, belongs to the pod's user as the token does, and
    those of other files do not."""
    await with_account(node)
    await with_objects(node)
    await node.api.create_pod(robot("web", of_each_kind(), securityContext=as_user(USER)))
    await node.wait_running("web")
    volume = node.machine.made_volume("web", VOLUME)
    link_owners = {name: (volume / name).lstat().st_uid for name in ("token", "map", "below")}
    expect_equal(node, link_owners, {"token": USER, "map": ME, "below": ME}, "owners of the links")

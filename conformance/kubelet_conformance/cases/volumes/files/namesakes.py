"""Volumes of a pod that is made while another of its name, gone from the API, still ends."""

from typing import Any, Final

from kubelet_conformance.cases.lifecycle.ending.namesakes import (
    GRACE_S,
    NAME,
    first_has_ended,
    replace_by_namesake,
    stubborn,
    wait_new_runs,
)
from kubelet_conformance.cases.volumes.claims import bind, data, local, user
from kubelet_conformance.cases.volumes.common import (
    VOLUME,
    config_map,
    main,
    wait_failed,
    wait_files,
    with_volume,
)
from kubelet_conformance.cases.volumes.files.tokens import REQUESTS, claims, token, with_account
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS: Final = [Feature.API, Feature.STATUS]
LONG: Final = [*NEEDS, Feature.VIRTUAL_TIME]


def slow(source: dict[str, Any], **spec: Any) -> PodPlan:
    """A pod with the volume that takes all its grace period to end."""
    return with_volume(NAME, source, main("main", workload=stubborn()), grace_s=GRACE_S, **spec)


@conformance(id="namesake-token", rules=["NODE-207.4"], needs=NEEDS, alone=True)
async def a_token_is_of_one_pod_whatever_its_name(node: Node) -> None:
    """The second one gets a token that is bound to it, not that of the first, which still ends."""
    await with_account(node)
    plan = slow(token(audience="vault", expirationSeconds=3600), serviceAccountName="robot")
    first, second = await replace_by_namesake(node, plan, plan)
    await wait_new_runs(node)
    token_claims = claims(node.machine.volume_files(NAME, VOLUME)["token"])
    expect_equal(node, token_claims["kubernetes.io"]["pod"]["uid"], second, "the UID in the token")
    bodies = [request.body for request in node.api.requests("POST", REQUESTS)]
    bound = [body["spec"]["boundObjectRef"]["uid"] for body in bodies]
    expect_equal(node, bound, [first, second], "for whom tokens were asked")


@conformance(id="namesake-files", rules=["NODE-200.1", "NODE-203.4"], needs=NEEDS, alone=True)
async def a_directory_is_of_one_pod_whatever_its_name(node: Node) -> None:
    """The second one has an empty directory of its own, which outlives the end of the first."""
    plan = slow({"emptyDir": {}})
    uids = await replace_by_namesake(node, plan, plan)
    await wait_new_runs(node)
    mounts = [call.request.config.mounts for call in node.calls("CreateContainer", pod=NAME)]
    places = [next(m.host_path for m in each if m.container_path == "/v") for each in mounts]
    own = [f"/{uid}/" in place for uid, place in zip(uids, places, strict=True)]
    expect(node, all(own), "a directory for each", places)
    place = node.machine.volume_path(NAME, VOLUME)
    expect(node, place.is_dir(), "a directory of the second one", places)
    node.machine.write_volume_file(NAME, VOLUME, "mine", "1")
    await first_has_ended(node)
    expect(node, node.machine.has_volume_file(NAME, VOLUME, "mine"), "the file is there", places)


@conformance(id="namesake-objects", rules=["NODE-207.1"], needs=LONG, alone=True)
async def the_end_of_a_namesake_ends_no_watch(node: Node) -> None:
    """What the second one reads is watched on when the first one has ended: a change arrives."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    source = {"configMap": {"name": "settings"}}
    await replace_by_namesake(node, slow(source), with_volume(NAME, source))
    await wait_new_runs(node)
    await first_has_ended(node)
    await node.api.change_object("configmaps", "settings", {"data": {"a": "2"}})
    await wait_files(node, NAME, {"a": "2"})
    expect_equal(node, node.event_count("FailedMount", pod=NAME), 0, "events FailedMount")


@conformance(id="namesake-claim", rules=["NODE-215.7"], needs=NEEDS, alone=True)
async def a_namesake_is_another_pod(node: Node) -> None:
    """A volume that is for one pod is not given to the second one while the first one ends; it is
    when that has ended."""
    await bind(node, local(data(node)), accessModes=["ReadWriteOncePod"])
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    await replace_by_namesake(node, slow(claim), user(NAME))
    message = await wait_failed(node, NAME)
    words = "is already in use by another pod"
    expect(node, message.endswith(words), words, message)
    expect_equal(node, node.count("RunPodSandbox", pod=NAME), 1, "sandboxes")
    await first_has_ended(node)
    await node.run_until(
        lambda: node.count("StartContainer", pod=NAME) == 2,
        within_s=20 + limits.START_S,
        what="the second one starts",
    )

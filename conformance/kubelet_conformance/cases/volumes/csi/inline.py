"""Inline volumes of storage drivers, and what else a CSIDriver object wants (NODE-218)."""

import json
from datetime import datetime
from typing import Any, Final

from fakecri.csi import FakeCsiDriver
from fakecri.csi.driver import ID_FILE
from kubelet_conformance.cases.volumes.common import UPDATE_S, secret
from kubelet_conformance.cases.volumes.csi.common import (
    AGAIN_S,
    BOTH,
    DISKS,
    HANDLE,
    IN,
    LONG,
    NEEDS,
    STAGE,
    a_driver,
    bind,
    expect_calls,
    expect_given,
    inline,
    mode,
    register,
    run_pod,
    source,
    user,
    wait_calls,
    wait_runs,
    wait_told,
)
from kubelet_conformance.cases.volumes.files.tokens import REQUESTS, claims, with_account
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.registry import conformance

ABOUT: Final = "csi.storage.k8s.io/"
TOKENS: Final = f"{ABOUT}serviceAccount.tokens"
SET_UP: Final = "kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: "


def published(node: Node, driver: FakeCsiDriver) -> Any:
    """The request of the only call to publish."""
    expect_equal(node, len(driver.requests(IN[1])), 1, "calls of NodePublishVolume")
    return driver.requests(IN[1])[0]


@conformance(id="csi-inline", rules=["NODE-218.1", "NODE-217.5"], needs=NEEDS)
async def an_inline_volume_is_only_published(node: Node) -> None:
    """An inline volume has a name made of pod and volume; it is neither attached nor staged, and is
    published as the pod wants it, with a secret of the pod's namespace."""
    driver = await a_driver(node, STAGE, attachRequired=True, **BOTH)
    await node.api.create_secret(secret("login", user="me"))
    fields: dict[str, Any] = {
        "fsType": "ext4",
        "readOnly": True,
        "volumeAttributes": {"size": "1Gi"},
        "nodePublishSecretRef": {"name": "login"},
    }
    await run_pod(node, inline(**fields))
    expect_calls(node, driver, IN[1:])
    request, target = published(node, driver), node.storage.target_path("web", "v")
    expected_fields = node.storage.inline_handle("web", "v"), "", str(target)
    request_fields = request.volume_id, request.staging_target_path, request.target_path
    expect_equal(node, request_fields, expected_fields, "volume, staging path and target")
    expect_equal(node, mode(request), "SINGLE_NODE_WRITER", "access mode")
    options = (
        request.volume_capability.mount.fs_type,
        request.readonly,
        dict(request.volume_context),
        dict(request.secrets),
        dict(request.publish_context),
    )
    expect_equal(node, options, ("ext4", True, {"size": "1Gi"}, {"user": "me"}, {}), "the rest")
    expect_given(node, "web", target, read_only=True)
    expect_equal(node, node.storage.in_use(), [], "volumesInUse")


@conformance(id="csi-inline-writers", rules=["NODE-218.1"], needs=NEEDS)
async def an_inline_volume_has_many_writers(node: Node) -> None:
    """A driver that tells the writers of one node apart is told that an inline volume may have
    many."""
    driver = await a_driver(node, "SINGLE_NODE_MULTI_WRITER", **BOTH)
    await run_pod(node, inline())
    expect_equal(node, mode(published(node, driver)), "SINGLE_NODE_MULTI_WRITER", "access mode")
    expect_equal(node, published(node, driver).readonly, False, "readonly")


@conformance(id="csi-inline-refused", rules=["NODE-218.2"], needs=NEEDS)
async def a_driver_must_take_inline_volumes(node: Node) -> None:
    """A driver that does not say that it takes inline volumes gets none; an event says so, whether
    there is a CSIDriver object or not."""
    driver = FakeCsiDriver("plain.example")
    await register(node, driver, "plain.sock")
    await node.api.create_pod(inline("first", driver=driver.name))
    why = (
        f'MountVolume.SetUp failed for volume "v" : {SET_UP}volume mode "Ephemeral" not supported '
        "by driver plain.example (no CSIDriver object)"
    )
    await wait_told(node, why, pod="first")
    disks = await a_driver(node)
    await node.api.create_pod(inline())
    why = (
        f'MountVolume.SetUp failed for volume "v" : {SET_UP}volume mode "Ephemeral" not supported '
        f'by driver {DISKS} (only supports ["Persistent"])'
    )
    await wait_told(node, why)
    for plugin_driver in (driver, disks):
        expect_calls(node, plugin_driver, ())


@conformance(id="csi-persistent-refused", rules=["NODE-218.2"], needs=NEEDS)
async def a_driver_may_take_inline_volumes_only(node: Node) -> None:
    """A driver that takes only inline volumes gets no persistent one published; an event says
    so."""
    driver = await a_driver(node, volumeLifecycleModes=["Ephemeral"])
    await bind(node, source())
    await node.api.create_pod(user())
    why = (
        f'MountVolume.SetUp failed for volume "pv" : {SET_UP}volume mode "Persistent" not '
        f'supported by driver {DISKS} (only supports ["Ephemeral"])'
    )
    await wait_told(node, why)
    expect_calls(node, driver, ())


@conformance(id="csi-pod-info", rules=["NODE-218.3"], needs=NEEDS)
async def a_driver_can_be_told_of_the_pod(node: Node) -> None:
    """A driver that wants it is told which pod a volume is published for, beside the volume's own
    attributes; staging is not for one pod."""
    driver = await a_driver(node, STAGE, podInfoOnMount=True, **BOTH)
    await bind(node, source(volumeAttributes={"a": "1"}))
    await node.api.create_object("serviceaccounts", {"metadata": {"name": "worker"}})
    account: dict[str, Any] = {"serviceAccountName": "worker"}
    await run_pod(node, inline("first", account, volumeAttributes={"a": "2"}))
    await run_pod(node, user(**account))
    for number, pod in enumerate(("first", "web")):
        api_pod = node.api.pod(pod) or {}
        expected_context = {
            "a": "2" if pod == "first" else "1",
            f"{ABOUT}pod.name": pod,
            f"{ABOUT}pod.namespace": "default",
            f"{ABOUT}pod.uid": api_pod["metadata"]["uid"],
            f"{ABOUT}serviceAccount.name": "worker",
            f"{ABOUT}ephemeral": "true" if pod == "first" else "false",
        }
        context = dict(driver.requests(IN[1])[number].volume_context)
        expect_equal(node, context, expected_context, f"context for pod {pod}")
    staged = dict(driver.requests(IN[0])[0].volume_context)
    expect_equal(node, staged, {"a": "1"}, "context of staging")


ROBOT: Final[dict[str, Any]] = {"serviceAccountName": "robot"}
"""The account of the pods that `with_account` makes."""


async def check_tokens(node: Node, text: str, pod: str, *audiences: str) -> None:
    """Expect tokens of the pod and its account, one for each audience, with their ends."""
    tokens = json.loads(text)
    expect_equal(node, sorted(tokens), sorted(audiences), "audiences")
    for audience in audiences:
        row = tokens[audience]
        expect_equal(node, sorted(row), ["expirationTimestamp", "token"], "fields of a token")
        payload = claims(row["token"])
        actual = payload["sub"], payload["aud"], payload["kubernetes.io"]["pod"]["name"]
        expected = "system:serviceaccount:default:robot", [audience], pod
        expect_equal(node, actual, expected, "account, audiences and pod of a token")
        ends = datetime.fromisoformat(row["expirationTimestamp"]).timestamp() - node.unix_s
        expect(node, 500 < ends < 900, "a token for a quarter of an hour", ends)


@conformance(id="csi-tokens", rules=["NODE-218.4"], needs=NEEDS)
async def a_driver_can_get_tokens_of_the_pod(node: Node) -> None:
    """A driver that wants tokens gets one of the pod's account for each audience, when a volume is
    published. While there is none an event says so, and the pod waits."""
    tokens = [{"audience": name, "expirationSeconds": 700} for name in ("vault", "store")]
    driver = await a_driver(node, STAGE, tokenRequests=tokens, **BOTH)
    await with_account(node)
    await bind(node, source(volumeAttributes={"a": "1"}))
    with node.api.fails("POST", REQUESTS, status=403):
        await node.api.create_pod(user(**ROBOT))
        await node.run_until(
            lambda: node.events("FailedMount"), within_s=AGAIN_S, what="an event FailedMount"
        )
        why = (
            'MountVolume.SetUp failed for volume "pv" : kubernetes.io/csi: mounter.SetUpAt failed '
            "to get service accoount token attributes: failed to fetch token: "
        )
        message = node.events("FailedMount")[0]["message"]
        expect(node, message.startswith(why), why, message)
    await wait_runs(node, "web")
    request = published(node, driver)
    expect_equal(node, sorted(request.volume_context), ["a", TOKENS], "keys of the context")
    await check_tokens(node, request.volume_context[TOKENS], "web", "vault", "store")
    expect_equal(node, dict(request.secrets), {}, "secrets")
    expect_equal(node, sorted(driver.requests(IN[0])[0].volume_context), ["a"], "of staging")


@conformance(id="csi-tokens-in-secrets", rules=["NODE-218.4"], needs=NEEDS, since="1.35")
async def tokens_can_be_secrets(node: Node) -> None:
    """A driver can get the tokens among its secrets instead."""
    tokens = [{"audience": "vault", "expirationSeconds": 700}]
    driver = await a_driver(node, tokenRequests=tokens, serviceAccountTokenInSecrets=True, **BOTH)
    await with_account(node)
    await node.api.create_secret(secret("login", user="me"))
    await run_pod(node, inline("web", ROBOT, nodePublishSecretRef={"name": "login"}))
    request = published(node, driver)
    expect_equal(node, dict(request.volume_context), {}, "context")
    expect_equal(node, sorted(request.secrets), [TOKENS, "user"], "keys of the secrets")
    await check_tokens(node, request.secrets[TOKENS], "web", "vault")


@conformance(
    id="csi-republish",
    rules=["NODE-218.5"],
    needs=LONG,
    bugs=[KnownBug("121271", "A mount that cannot be renewed is removed.", fixed="1.34")],
)
async def a_volume_can_be_published_again_and_again(node: Node) -> None:
    """A driver that wants it is asked at each sync of the pod to publish the volume again. When
    that fails an event says so; volume and pod stay as they are, and it is tried again."""
    driver = await a_driver(node, STAGE, requiresRepublish=True, **BOTH)
    await bind(node, source())
    await run_pod(node, user())
    await run_pod(node, inline("second"))
    targets = [node.storage.target_path("web", "pv"), node.storage.target_path("second", "v")]
    await wait_calls(node, driver, IN[1], 4, within_s=UPDATE_S)
    driver.fails("NodePublishVolume", "not now")
    (targets[0] / ID_FILE).unlink()  # a volume may be empty
    await node.run_until(
        lambda: all(node.events("FailedMount", pod=pod) for pod in ("web", "second")),
        within_s=UPDATE_S,
        what="events FailedMount of both pods",
    )
    why = 'MountVolume.SetUp failed for volume "pv" : rpc error: code = Internal desc = not now'
    expect_equal(node, node.events("FailedMount", pod="web")[0]["message"], why, "message")
    await node.run_for(UPDATE_S)
    files_exist = targets[0].exists(), (targets[1] / ID_FILE).exists()
    expect_equal(node, files_exist, (True, True), "the published volumes are there")
    driver.works("NodePublishVolume")
    before = len(driver.requests(IN[1]))
    await wait_calls(node, driver, IN[1], before + 2, within_s=2 * UPDATE_S)
    expect_equal(node, driver.methods("NodeUnpublishVolume", "NodeUnstageVolume"), [], "ends")
    expect_equal(node, driver.methods(IN[0]), [IN[0]], "calls to stage")
    stops = node.count("StopContainer"), node.count("CreateContainer")
    expect_equal(node, stops, (0, 2), "stopped and created containers")
    expect_equal(node, driver.requests(IN[1])[0].volume_id, HANDLE, "volume")


@conformance(id="csi-not-republished", rules=["NODE-218.5"], needs=LONG)
async def a_volume_is_published_once_unless_the_driver_says_so(node: Node) -> None:
    """Other volumes are not published again while the pod runs."""
    driver = await a_driver(node, STAGE, **BOTH)
    await bind(node, source())
    await run_pod(node, user())
    await node.run_for(2 * UPDATE_S)
    expect_calls(node, driver, IN)

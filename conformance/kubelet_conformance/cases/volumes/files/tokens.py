"""Tokens of service accounts in volumes: for whom they are, who may read them, when they change."""

import base64
import json
import os
from typing import Any

from kubelet_conformance.cases.volumes.common import (
    UPDATE_S,
    VOLUME,
    main,
    mode,
    run_with,
    wait_failed,
    with_volume,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS]
LONG = [*NEEDS, Feature.VIRTUAL_TIME]
REQUESTS = r"/serviceaccounts/robot/token$"


def token(**fields: Any) -> dict[str, Any]:
    """A projected volume with a token."""
    return {"projected": {"sources": [{"serviceAccountToken": {"path": "token", **fields}}]}}


async def with_account(node: Node) -> None:
    """Make the service account of the pods."""
    await node.api.create_object("serviceaccounts", {"metadata": {"name": "robot"}})


def claims(text: str) -> dict[str, Any]:
    """What a token says."""
    body = text.split(".")[1]
    payload = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return dict(payload)


@conformance(id="volume-token", rules=["NODE-207.4", "NODE-205.8"], needs=NEEDS, alone=True)
async def a_pod_gets_a_token_of_its_own(node: Node) -> None:
    """The token of a volume is of the pod's service account, for the audience that was asked for,
    and bound to the pod."""
    await with_account(node)
    source = token(audience="vault", expirationSeconds=3600)
    files = await run_with(node, with_volume("web", source, serviceAccountName="robot"))
    token_claims = claims(files["token"])
    expect_equal(node, token_claims["sub"], "system:serviceaccount:default:robot", "subject")
    expect_equal(node, token_claims["aud"], ["vault"], "audiences")
    bound = token_claims["kubernetes.io"]["pod"]
    uid = (node.api.pod("web") or {})["metadata"]["uid"]
    expect_equal(node, (bound["name"], bound["uid"]), ("web", uid), "the pod in the token")


@conformance(id="volume-token-renewed", rules=["NODE-207.4", "NODE-201.3"], needs=LONG)
async def a_token_is_renewed_before_it_expires(node: Node) -> None:
    """A token is exchanged when four fifths of its life are over, and not before."""
    await with_account(node)
    source = token(expirationSeconds=1000)
    plan = with_volume("web", source, serviceAccountName="robot")
    first = (await run_with(node, plan))["token"]
    began_s = node.now_s
    await node.run_for(780)
    later_token = node.machine.volume_files("web", VOLUME)["token"]
    expect(node, later_token == first, "the same token after 780 s of 1000")
    expect_equal(node, len(node.api.requests("POST", REQUESTS)), 1, "requests for tokens")
    await node.run_until(
        lambda: node.machine.volume_files("web", VOLUME)["token"] != first,
        within_s=20 + UPDATE_S,
        what="another token",
    )
    expect(node, node.now_s - began_s < 1000, "before the first one expires", node.now_s - began_s)


@conformance(id="volume-token-kept", rules=["NODE-207.4"], needs=LONG)
async def an_old_token_serves_while_none_can_be_had(node: Node) -> None:
    """While the server refuses to renew a token, the volume keeps the old one and the pod runs;
    the new one comes when the server works again."""
    await with_account(node)
    plan = with_volume("web", token(expirationSeconds=1000), serviceAccountName="robot")
    first = (await run_with(node, plan))["token"]
    with node.api.fails("POST", REQUESTS, status=500):
        await node.run_for(810 + UPDATE_S)
        later_token = node.machine.volume_files("web", VOLUME)["token"]
        expect(node, later_token == first, "the old token")
        expect_equal(node, node.event_count("FailedMount", pod="web"), 0, "events FailedMount")
    await node.run_until(
        lambda: node.machine.volume_files("web", VOLUME)["token"] != first,
        within_s=UPDATE_S,
        what="another token",
    )


@conformance(id="volume-token-refused", rules=["NODE-207.4", "NODE-202.1"], needs=LONG)
async def without_a_token_a_pod_waits(node: Node) -> None:
    """A pod whose token the server refuses gets no sandbox; an event tells what the server said,
    and the pod starts once the server gives one."""
    await with_account(node)
    plan = with_volume("web", token(), serviceAccountName="robot")
    with node.api.fails("POST", REQUESTS, status=500):
        await node.api.create_pod(plan)
        message = await wait_failed(node, "web")
        began = 'MountVolume.SetUp failed for volume "v" : failed to fetch token: '
        expect(node, message.startswith(began), f"a message that begins with {began}", message)
        expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    await node.run_until(
        lambda: node.running("web"),
        within_s=2 * UPDATE_S + limits.START_S,
        what="the pod runs",
    )


@conformance(id="volume-token-of-user", rules=["NODE-205.9"], needs=NEEDS)
async def a_token_is_for_the_user_of_the_pod(node: Node) -> None:
    """If all containers run as one user, only that user may read the token; if two differ, the
    token has the mode of the volume."""
    await with_account(node)
    me = os.geteuid() or 2000
    both = [main("main"), main("other", securityContext={"runAsUser": me})]
    plan = with_volume(
        "one", token(), *both, serviceAccountName="robot", securityContext={"runAsUser": me}
    )
    await node.api.create_pod(plan)
    await node.wait_running("one", "main", "other")
    owner = (node.machine.made_volume("one", VOLUME) / "token").stat().st_uid
    expect_equal(node, (owner, mode(node, "one", "token")), (me, "0o600"), "owner, mode")
    plan = with_volume("two", token(), *both, serviceAccountName="robot")
    await node.api.create_pod(plan)
    await node.wait_running("two", "main", "other")
    expect_equal(node, mode(node, "two", "token"), "0o644", "mode of the token of two users")


@conformance(id="volume-default-token", rules=["NODE-205.8", "NODE-207.4"], needs=NEEDS, alone=True)
async def an_ordinary_pod_of_a_cluster_starts(node: Node) -> None:
    """A pod that names no volume gets token, namespace and certificate of the cluster from it, and
    runs."""
    node.api.fake.admit_service_accounts()
    await node.api.create_pod(pod("web"))
    await node.wait_running("web")
    volumes = (node.api.pod("web") or {})["spec"]["volumes"]
    files = node.machine.volume_files("web", volumes[0]["name"])
    expect_equal(node, sorted(files), ["ca.crt", "namespace", "token"], "files")
    expect_equal(node, files["namespace"], "default", "namespace")

"""Tokens of several pods, audiences and lives: what each is for, what an expired one is worth."""

from kubelet_conformance.cases.volumes.common import (
    UPDATE_S,
    VOLUME,
    main,
    run_with,
    wait_failed,
    with_volume,
)
from kubelet_conformance.cases.volumes.files.tokens import (
    LONG,
    NEEDS,
    REQUESTS,
    claims,
    token,
    with_account,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import conformance


@conformance(id="volume-token-for-each", rules=["NODE-207.4"], needs=NEEDS)
async def tokens_are_for_one_pod_audience_and_life(node: Node) -> None:
    """Pods of one account have tokens of their own, as have audiences and lives within a pod; two
    volumes that want the same have the same, and a container that starts again asks for none."""
    await with_account(node)
    sources = [
        {"serviceAccountToken": {"path": path, "audience": audience, "expirationSeconds": life_s}}
        for path, audience, life_s in (
            ("one", "vault", 3600),
            ("same", "vault", 3600),
            ("other", "store", 3600),
            ("longer", "vault", 7200),
        )
    ]
    source = {"projected": {"sources": sources}}
    by_pod = {}
    for name in ("web", "app"):
        work = in_turn(exits(1, after_s=2), runs())
        plan = with_volume(name, source, main(workload=work), serviceAccountName="robot")
        files = by_pod[name] = await run_with(node, plan)
        bound = {path: claims(text)["kubernetes.io"]["pod"]["name"] for path, text in files.items()}
        expect_equal(node, bound, dict.fromkeys(files, name), f"the pod in the tokens of {name}")
        expect_equal(node, files["one"], files["same"], "two that want the same")
        audiences = {path: claims(text)["aud"] for path, text in files.items()}
        expected = {"one": ["vault"], "same": ["vault"], "other": ["store"], "longer": ["vault"]}
        expect_equal(node, audiences, expected, "audiences")
        lives = {path: claims(files[path])["exp"] - claims(files[path])["iat"] for path in files}
        expect(node, lives["longer"] > lives["one"], "a longer life", lives)
    expect(node, by_pod["web"]["one"] != by_pod["app"]["one"], "pods have tokens of their own")
    before = len(node.api.requests("POST", REQUESTS))
    expect_equal(node, before, 6, "requests for tokens")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 4,
        within_s=2 + limits.START_S + limits.SYNC_ERROR_S,
        what="both have started again",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, len(node.api.requests("POST", REQUESTS)), before, "requests afterwards")


@conformance(id="volume-token-expired", rules=["NODE-207.4", "NODE-207.6"], needs=LONG)
async def an_expired_token_serves_no_more(node: Node) -> None:
    """While the server refuses to renew a token, it serves until it expires; then an event tells
    that it has, the pod runs on, and a new one comes when the server works again."""
    await with_account(node)
    plan = with_volume("web", token(expirationSeconds=600), serviceAccountName="robot")
    first = (await run_with(node, plan))["token"]
    with node.api.fails("POST", REQUESTS, status=500):
        await node.run_for(590)
        expect_equal(node, node.event_count("FailedMount", pod="web"), 0, "events before its end")
        await node.run_for(13)  # a kubelet may forget expired tokens a minute later
        await node.api.patch_pod("web", {"metadata": {"annotations": {"note": "sync"}}})
        message = await wait_failed(node, "web")
        began = 'MountVolume.SetUp failed for volume "v" : token "robot"/"default"/'
        expect(node, message.startswith(began), f"a message that begins with {began}", message)
        words = " expired and refresh failed: "
        expect(node, words in message, f"a message with{words}", message)
        expect(node, node.running("web"), "the pod runs", node.container("web", "main"))
    await node.run_until(
        lambda: node.machine.volume_files("web", VOLUME)["token"] != first,
        within_s=122 + UPDATE_S,
        what="another token",
    )

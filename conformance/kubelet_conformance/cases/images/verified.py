"""Which pods may use an image that is present: verified by what it was pulled with (BACK-210)."""

from kubelet_conformance.cases.images.credentials import private_image, users, with_secrets
from kubelet_conformance.cases.images.seen import pulls, wait_event, wait_running, wait_waiting
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.image_registry import pull_secret
from kubelet_conformance.harness.manifests import IMAGE, OTHER_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, KnownBug, conformance

API, STATUS, REGISTRY = Feature.API, Feature.STATUS, Feature.REGISTRY
NEEDS = [API, STATUS, REGISTRY]
POLICY = "imagePullCredentialsVerificationPolicy"


@conformance(
    id="image-not-for-everyone",
    rules=["BACK-210.4", "BACK-210.5"],
    needs=NEEDS,
    since="1.35",
    alone=True,
)
async def an_image_pulled_with_a_secret_is_not_for_everyone(node: Node) -> None:
    """A pod without the secret must pull an image that is present but was pulled with that secret,
    and the registry refuses it; with policy Never the image counts as absent for that pod."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("owner", image, "login"))
    await wait_running(node, "owner")
    await node.api.create_pod(with_secrets("guest", image))
    await wait_waiting(node, "guest", "ErrImagePull")
    expect_equal(node, users(node, image, "guest")[0], "", "user of the guest's pull")
    await node.api.create_pod(with_secrets("quiet", image, imagePullPolicy="Never"))
    text = f'Container image "{image}" is not present with pull policy of Never'
    expect_equal(node, await wait_waiting(node, "quiet", "ErrImageNeverPull"), text, "message")


@conformance(id="image-for-the-same-secret", rules=["BACK-210.2"], needs=NEEDS, alone=True)
async def the_same_login_needs_no_second_pull(node: Node) -> None:
    """Pods with the same secret, or with the same login in another secret, use the present image
    without a pull."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_secret(pull_secret("copy", host))
    await node.api.create_pod(with_secrets("owner", image, "login"))
    await wait_running(node, "owner")
    await node.api.create_pod(with_secrets("same", image, "login"))
    await node.api.create_pod(with_secrets("equal", image, "copy"))
    await wait_running(node, "same")
    await wait_running(node, "equal")
    expect_equal(node, len(pulls(node, image)), 1, "pulls for three pods")


@conformance(id="image-pulled-openly", rules=["BACK-210.1"], needs=NEEDS, alone=True)
async def an_image_pulled_anonymously_is_for_everyone(node: Node) -> None:
    """An image that was pulled without credentials is used by other pods without a pull."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    for name in ("owner", "guest"):
        await node.api.create_pod(with_secrets(name, image))
        await wait_running(node, name)
    expect_equal(node, len(pulls(node, image)), 1, "pulls for two pods")


@conformance(
    id="image-records-stay",
    rules=["BACK-211", "BACK-210.1"],
    needs=[*NEEDS, Feature.RESTART],
    since="1.35",
)
async def a_restarted_kubelet_knows_with_what_an_image_was_pulled(node: Node) -> None:
    """After a restart of the kubelet an image that was pulled with a secret still may not be used
    without it."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("owner", image, "login"))
    await wait_running(node, "owner")
    await node.kubelet.restart()
    await node.api.create_pod(with_secrets("guest", image))
    await wait_waiting(node, "guest", "ErrImagePull")
    await node.api.create_pod(with_secrets("same", image, "login"))
    await wait_running(node, "same")
    expect_equal(node, pulls(node, image, "same"), [], "pulls with the same secret")


@conformance(
    id="image-for-each-secret",
    rules=["BACK-210.2", "BACK-210.4"],
    needs=NEEDS,
    since="1.35",
    alone=True,
)
async def every_secret_proves_access_for_itself(node: Node) -> None:
    """A pod with another login must pull, and both logins are known from then on; of several
    secrets of a pod one that is known is enough."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    for name in ("one", "two", "three"):
        await node.api.create_secret(pull_secret(name, registry.open_host, user=name))
    for name in ("one", "two"):
        await node.api.create_pod(with_secrets(f"owner-{name}", image, name))
        await wait_running(node, f"owner-{name}")
    expect_equal(node, users(node, image), ["one", "two"], "users of the pulls")
    await node.api.create_pod(with_secrets("again", image, "one"))
    await node.api.create_pod(with_secrets("both", image, "three", "two"))
    await wait_running(node, "again")
    await wait_running(node, "both")
    expect_equal(node, users(node, image), ["one", "two"], "users of the pulls for four pods")


@conformance(
    id="image-for-a-changed-secret", rules=["BACK-210.2"], needs=NEEDS, since="1.35", alone=True
)
async def a_changed_secret_is_the_same_secret(node: Node) -> None:
    """A secret whose content has changed still proves access by its name and UID; one that was
    deleted and made anew with another login does not. A copy that proved access by its login is
    known by its name, too."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    host = registry.open_host
    image = f"{host}/app:1"
    for name in ("login", "copy"):
        await node.api.create_secret(pull_secret(name, host))
    for name in ("login", "copy"):
        await node.api.create_pod(with_secrets(f"with-{name}", image, name))
        await wait_running(node, f"with-{name}")
    for name in ("login", "copy"):
        await node.api.replace_data(pull_secret(name, host, user=f"new-{name}"))
        await node.api.create_pod(with_secrets(f"then-{name}", image, name))
        await wait_running(node, f"then-{name}")
    expect_equal(node, len(pulls(node, image)), 1, "pulls for four pods")
    await node.api.delete_secret("login")
    await node.api.create_secret(pull_secret("login", host, user="other"))
    await node.run_for(1)  # until the watch of the secret has told it
    await node.api.create_pod(with_secrets("last", image, "login"))
    await wait_running(node, "last")
    expect_equal(node, users(node, image, "last"), ["other"], "users of the pulls after that")


@conformance(
    id="image-under-another-name",
    rules=["BACK-210.3", "BACK-210.4"],
    needs=NEEDS,
    since="1.35",
    alone=True,
)
async def what_was_proved_for_a_name_counts_for_that_name(node: Node) -> None:
    """An image that everybody may use under the name of an open registry may not be used under that
    of a closed one without its secret."""
    closed, host = await private_image(node)
    registry = await node.runtime.registry()
    await node.api.create_pod(with_secrets("open", f"{registry.open_host}/team/app:1"))
    await wait_running(node, "open")
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("owner", closed, "login"))
    await wait_running(node, "owner")
    await node.api.create_pod(with_secrets("guest", closed))
    await wait_waiting(node, "guest", "ErrImagePull")
    expect_equal(node, users(node, closed, "guest")[0], "", "user of the guest's pull")


@conformance(id="image-preloaded", rules=["BACK-210.1", "BACK-211"], needs=[API, STATUS])
async def a_preloaded_image_needs_no_proof(node: Node) -> None:
    """With the default policy an image that the kubelet has not pulled is for everyone, also after
    a pull of it has failed."""
    main = container("main", image=OTHER_IMAGE, imagePullPolicy="Always")
    await node.api.create_pod(pod("always", main))
    await wait_waiting(node, "always", "ErrImagePull")
    await node.api.create_pod(pod("web", container("main", image=OTHER_IMAGE)))
    await wait_running(node, "web")
    expect_equal(node, pulls(node, OTHER_IMAGE, "web"), [], "pulls of the second pod")


@conformance(
    id="image-always-verified",
    rules=["BACK-210.1", "BACK-210.5"],
    needs=[API, STATUS],
    node_config={POLICY: "AlwaysVerify"},
    since="1.35",
)
async def with_always_verify_a_preloaded_image_is_pulled(node: Node) -> None:
    """With AlwaysVerify a preloaded image must be pulled, and with the pull policy Never it counts
    as absent."""
    await node.api.create_pod(pod("web"))
    await wait_waiting(node, "web", "ErrImagePull")
    await node.api.create_pod(pod("quiet", container("main", imagePullPolicy="Never")))
    await wait_waiting(node, "quiet", "ErrImageNeverPull")
    expect_equal(node, pulls(node, IMAGE, "quiet"), [], "pulls with the policy Never")


@conformance(
    id="image-never-verified",
    rules=["BACK-210.1"],
    needs=NEEDS,
    node_config={POLICY: "NeverVerify"},
    since="1.35",
    alone=True,
)
async def with_never_verify_all_pods_may_use_an_image(node: Node) -> None:
    """With NeverVerify a pod without the secret uses an image that was pulled with it."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("owner", image, "login"))
    await wait_running(node, "owner")
    await node.api.create_pod(with_secrets("guest", image))
    await wait_running(node, "guest")
    expect_equal(node, pulls(node, image, "guest"), [], "pulls of the guest")


@conformance(
    id="image-allowlisted",
    rules=["BACK-210.1"],
    needs=[API, STATUS, Feature.RESTART],
    node_config={
        POLICY: "NeverVerifyAllowlistedImages",
        "preloadedImagesVerificationAllowlist": ["localhost/*"],
    },
    since="1.35",
    bugs=[
        KnownBug(
            "137629", "A repository of the allowlist is not that of an image with tag", fixed="1.36"
        )
    ],
)
async def images_of_the_allowlist_need_no_proof(node: Node) -> None:
    """With NeverVerifyAllowlistedImages preloaded images that the list names, by a repository or by
    all below a path, are for everyone, and others are not."""
    await node.api.create_pod(pod("web"))
    await wait_running(node, "web")
    names = ["localhost/another", IMAGE.partition(":")[0]]
    await node.kubelet.restart(preloadedImagesVerificationAllowlist=names)
    await node.api.create_pod(pod("named"))
    await wait_running(node, "named")
    await node.kubelet.restart(preloadedImagesVerificationAllowlist=names[:1])
    await node.api.create_pod(pod("other"))
    await wait_waiting(node, "other", "ErrImagePull")


@conformance(
    id="image-access-off",
    rules=["BACK-202.2", "BACK-210.4"],
    needs=[API, STATUS],
    node_config={"featureGates": {"KubeletEnsureSecretPulledImages": False}},
)
async def without_the_gate_nothing_is_verified(node: Node) -> None:
    """Without KubeletEnsureSecretPulledImages the event about a present image does not speak of
    access."""
    await node.api.create_pod(pod("web"))
    await wait_running(node, "web")
    await wait_event(node, "web", "Pulled", f'Container image "{IMAGE}" already present on machine')

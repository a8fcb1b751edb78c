"""Credential provider plug-ins: programs of the node that know logins for registries."""

import re
from typing import Any

from kubelet_conformance.cases.images.credentials import private_image, users, with_secrets
from kubelet_conformance.cases.images.seen import PULLED_S, pulls, wait_running, wait_waiting
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.image_registry import USER, docker_config, pull_secret
from kubelet_conformance.harness.kubelets.login_plugins import (
    PROTOCOL,
    LoginPlugin,
    answer_of,
    provider_config,
)
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS, Feature.REGISTRY, Feature.RESTART]
LONG = [*NEEDS, Feature.VIRTUAL_TIME]
AUDIENCE = "registry.test"


def always(name: str, image: str) -> PodPlan:
    """A pod that pulls the image whether it is there or not."""
    return with_secrets(name, image, imagePullPolicy="Always")


async def run_always(node: Node, name: str, image: str) -> None:
    """Run a pod that pulls the image."""
    await node.api.create_pod(always(name, image))
    await wait_running(node, name)


@conformance(id="login-plugin-asked", rules=["BACK-214.1", "BACK-214.2"], needs=NEEDS)
async def a_plugin_is_asked_for_a_login(node: Node) -> None:
    """A credential provider plug-in is run for an image that it is for, with its arguments and
    variables, and is told the image's full name without tag; the image is pulled with the login
    that it answers."""
    image, host = await private_image(node)
    variables = [{"name": "REGION", "value": "north"}, {"name": "PLACE", "value": ""}]
    more = {"args": ["get", "a login"], "env": variables}
    await node.logins.use(LoginPlugin("cloud", [f"*.{host.partition('.')[2]}/team"], more))
    await node.api.create_pod(with_secrets("web", image))
    await wait_running(node, "web")
    plugin_runs = node.logins.asked("cloud")
    expect_equal(node, len(plugin_runs), 1, "runs of the plug-in")
    expected_request = {
        "apiVersion": PROTOCOL,
        "kind": "CredentialProviderRequest",
        "image": image.rpartition(":")[0],
    }
    expect_equal(node, plugin_runs[0].request, expected_request, "request")
    expect_equal(node, plugin_runs[0].args, ("get", "a login"), "arguments")
    given_variables = {name: plugin_runs[0].environment.get(name) for name in ("REGION", "PLACE")}
    expect_equal(node, given_variables, {"REGION": "north", "PLACE": ""}, "variables")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(id="login-plugin-of-another-registry", rules=["BACK-214.1"], needs=NEEDS)
async def a_plugin_is_not_asked_for_other_images(node: Node) -> None:
    """A plug-in is not run for an image that none of its matchImages covers: another host, a domain
    above it, another number of parts, another port, another path."""
    image, host = await private_image(node)
    domain = host.partition(".")[2]
    patterns = [f"other.{domain}", domain, f"*.*.{domain}", f"{host}:5000", f"{host}/teams"]
    await node.logins.use(LoginPlugin("cloud", patterns))
    node.logins.answers("cloud", answer_of(host))
    await node.api.create_pod(with_secrets("web", image))
    await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, node.logins.asked("cloud"), [], "runs of the plug-in")
    expect_equal(node, set(users(node, image)), {""}, "users of the pulls")


@conformance(id="login-plugins-in-turn", rules=["BACK-214.4"], needs=NEEDS, since="1.33")
async def logins_of_plugins_come_last(node: Node) -> None:
    """Logins of plug-ins are tried after those of pull secrets and of the node; among them those
    for the longer place first, and those for the same place in the order of the configuration."""
    image, host = await private_image(node)
    node.machine.write_root_file("config.json", docker_config(host, user="node"))
    await node.api.create_secret(pull_secret("login", host, user="secret"))
    names = ("second", "first", "third")
    await node.logins.use(*(LoginPlugin(name, [host]) for name in names))
    for name in names[:2]:
        node.logins.answers(name, answer_of(host, user=name))
    node.logins.answers("third", answer_of(f"{host}/team", user="third"))
    node.logins.answers("first", answer_of(host))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_running(node, "web")
    expected_users = ["secret", "node", "third", "second", USER]
    expect_equal(node, users(node, image), expected_users, "users of the pulls")


@conformance(id="login-plugins-fail", rules=["BACK-214.3"], needs=NEEDS)
async def a_plugin_that_fails_is_left_out(node: Node) -> None:
    """What a plug-in says that ends with a code other than 0, or that answers nonsense, another
    version, another kind or an unknown way to keep it, is not used; the next plug-in's login
    is."""
    image, host = await private_image(node)
    wrong = {
        "ends": answer_of(host, user="ends"),
        "nonsense": f"login: {host}",
        "empty": "",
        "version": answer_of(host, user="version", apiVersion=f"{PROTOCOL}beta1"),
        "kind": answer_of(host, user="kind", kind="CredentialProviderRequest"),
        "keeps": answer_of(host, user="keeps", cacheKeyType="Planet"),
        "field": answer_of(host, user="field", comment="hello"),
    }
    await node.logins.use(*(LoginPlugin(name, [host]) for name in (*wrong, "good")))
    for name, answer in wrong.items():
        node.logins.answers(name, answer, code=3 if name == "ends" else 0)
    await node.api.create_pod(with_secrets("web", image))
    await wait_running(node, "web")
    runs = {name: len(node.logins.asked(name)) for name in wrong}
    expect_equal(node, runs, dict.fromkeys(wrong, 1), "runs of the plug-ins")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(
    id="login-plugin-hangs",
    rules=["BACK-214.3"],
    needs=[*LONG, Feature.PROGRAM_TIME],
)
async def a_plugin_has_a_minute(node: Node) -> None:
    """A plug-in may take a minute; one that does not end by then gives no login, and the pull is
    tried without it. Other pods do not wait for it."""
    image, host = await private_image(node)
    registry = await node.runtime.registry()
    await registry.add("app:1")
    await node.logins.use(LoginPlugin("slow", [host]))
    node.logins.answers("slow", answer_of(host), takes_s=58)
    await node.api.create_pod(with_secrets("web", image))
    await node.run_for(40)
    await node.api.create_pod(with_secrets("other", f"{registry.open_host}/app:1"))
    await wait_running(node, "other")
    expect_equal(node, users(node, image), [], "users of the pulls after 40 s")
    await node.run_until(lambda: pulls(node, image), within_s=30, what="a pull")
    expect_equal(node, users(node, image), [USER], "users of the pulls")
    node.logins.answers("slow", answer_of(host, user="late"), takes_s=3600)
    await node.api.create_pod(always("late", image))
    await node.run_until(
        lambda: pulls(node, image, "late"), within_s=60 + PULLED_S, what="a pull after a minute"
    )
    expect_equal(node, users(node, image, "late")[0], "", "user of the pull")


@conformance(id="login-plugin-for-every-pod", rules=["BACK-214.5"], needs=NEEDS)
async def an_image_pulled_for_the_node_is_for_every_pod(node: Node) -> None:
    """An image that was pulled with a plug-in's login may be used by other pods without a pull, and
    without asking the plug-in."""
    image, host = await private_image(node)
    await node.logins.use(LoginPlugin("cloud", [host]))
    for name in ("web", "guest"):
        await node.api.create_pod(with_secrets(name, image))
        await wait_running(node, name)
    expect_equal(node, len(pulls(node, image)), 1, "pulls for two pods")
    expect_equal(node, len(node.logins.asked("cloud")), 1, "runs of the plug-in")


@conformance(id="logins-kept-by-kind", rules=["BACK-215.1"], needs=NEEDS)
async def logins_are_kept_by_image_registry_or_for_all(node: Node) -> None:
    """What a plug-in answers is kept for the image, for all images of the registry, or for all that
    the plug-in is asked for, as it says."""
    registry = await node.runtime.registry()
    for name in ("team/app:1", "team/app:2", "other:1"):
        await registry.add(name)
    hosts = (registry.closed_host, registry.open_host)
    closed, opened = hosts
    runs = {}
    for kind in ("Image", "Registry", "Global"):
        name = kind.lower()
        await node.logins.use(LoginPlugin(name, hosts))
        node.logins.answers(name, answer_of(closed, cacheKeyType=kind, cacheDuration="1h"))
        counts = []
        images = (f"{closed}/team/app:1", f"{closed}/team/app:2", f"{closed}/other:1")
        for number, image in enumerate((*images, f"{opened}/other:1")):
            await run_always(node, f"{name}-{number}", image)
            counts.append(len(node.logins.asked(name)))
        runs[kind] = counts
    expected_runs = {"Image": [1, 1, 2, 3], "Registry": [1, 1, 1, 2], "Global": [1, 1, 1, 1]}
    expect_equal(node, runs, expected_runs, "runs of the plug-in after each pull")


@conformance(id="logins-kept-so-long", rules=["BACK-215.2"], needs=LONG)
async def logins_are_kept_as_long_as_told(node: Node) -> None:
    """An answer is kept for its cacheDuration, without one for the plug-in's defaultCacheDuration,
    and not at all with 0."""
    image, host = await private_image(node)
    counts: dict[str, list[int]] = {}
    for name, durations in (("told", {"cacheDuration": "5m"}), ("default", {})):
        plugin = LoginPlugin(name, [host], {"defaultCacheDuration": "10m"})
        await node.logins.use(plugin)
        node.logins.answers(name, answer_of(host, **durations))
        counts[name] = []
        for number in range(4):
            await run_always(node, f"{name}-{number}", image)
            counts[name].append(len(node.logins.asked(name)))
            await node.run_for(190)
    expected_counts = {"told": [1, 1, 2, 2], "default": [1, 1, 1, 1]}
    expect_equal(node, counts, expected_counts, "runs, one pull every 190 s and some")
    await node.run_for(100)
    await run_always(node, "last", image)
    expect_equal(node, len(node.logins.asked("default")), 2, "runs after more than 10 min")
    node.logins.answers("default", answer_of(host, cacheDuration="0s"))
    await node.run_for(700)
    for number in range(2):
        await run_always(node, f"never-{number}", image)
    expect_equal(node, len(node.logins.asked("default")), 4, "runs with cacheDuration 0")


@conformance(id="login-plugin-run-once", rules=["BACK-215.3"], needs=LONG, since="1.33")
async def pods_wait_for_one_run(node: Node) -> None:
    """Pods that need a login for the same image at the same time wait for one run of the plug-in,
    even if nothing is kept; for another image it runs beside it."""
    image, host = await private_image(node)
    registry = await node.runtime.registry()
    await registry.add("other:1")
    await node.logins.use(LoginPlugin("cloud", [host]))
    node.logins.answers("cloud", answer_of(host), takes_s=20)
    names = ("one", "two", "three", "other")
    for name in names[:3]:
        await node.api.create_pod(always(name, image))
    await node.api.create_pod(always("other", f"{host}/other:1"))
    await node.run_until(
        lambda: all(node.running(name) for name in names), within_s=40, what="all pods run"
    )
    images = sorted(run.request["image"] for run in node.logins.asked("cloud"))
    expect_equal(node, images, [f"{host}/other", f"{host}/team/app"], "images asked for")


# --- service accounts -------------------------------------------------------------------------


def with_account(name: str, image: str, account: str, policy: str = "Always") -> PodPlan:
    """A pod of that service account, which mounts no token of it."""
    main = container("main", image=image, imagePullPolicy=policy)
    return pod(name, main, serviceAccountName=account, automountServiceAccountToken=False)


async def create_account(node: Node, name: str, **annotations: str) -> None:
    """A service account with these annotations."""
    noted = {f"test.io/{key}": value for key, value in annotations.items()}
    manifest = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "annotations": noted},
    }
    await node.api.create_object("serviceaccounts", manifest)


def token_plugin(host: str, **attributes: Any) -> LoginPlugin:
    """A plug-in `cloud` that gets tokens of service accounts."""
    token_attributes = {
        "serviceAccountTokenAudience": AUDIENCE,
        "cacheType": "ServiceAccount",
        "requireServiceAccount": True,
        **attributes,
    }
    return LoginPlugin("cloud", [host], {"tokenAttributes": token_attributes})


@conformance(id="login-with-token", rules=["BACK-216.1", "BACK-216.2"], needs=NEEDS, since="1.34")
async def a_plugin_gets_a_token_of_the_service_account(node: Node) -> None:
    """A plug-in with tokenAttributes gets a token of the pod's service account for its audience,
    and the annotations of the account that its configuration names, if it has them."""
    image, host = await private_image(node)
    await create_account(node, "puller", id="7", role="reader", secret="no")
    keys = {
        "requiredServiceAccountAnnotationKeys": ["test.io/id"],
        "optionalServiceAccountAnnotationKeys": ["test.io/role", "test.io/absent"],
    }
    await node.logins.use(token_plugin(host, **keys))
    await node.api.create_pod(with_account("web", image, "puller"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), [USER], "users of the pulls")
    request = node.logins.asked("cloud")[0].request
    annotations = {"test.io/id": "7", "test.io/role": "reader"}
    expect_equal(node, request.get("serviceAccountAnnotations"), annotations, "annotations")
    user = await node.api.user_of_token(request["serviceAccountToken"], AUDIENCE)
    expect_equal(node, user["username"], "system:serviceaccount:default:puller", "user")
    bound = user["extra"]["authentication.kubernetes.io/pod-name"]
    expect_equal(node, bound, ["web"], "pod that the token is bound to")


@conformance(
    id="login-without-account",
    rules=["BACK-216.2", "BACK-216.3", "BACK-216.4"],
    needs=NEEDS,
    since="1.34",
)
async def without_the_account_a_plugin_is_not_asked(node: Node) -> None:
    """A plug-in that requires a service account, or an annotation of it, is not asked for a pod
    without; nor when the account cannot be read. One that does not require an account is asked
    without a token."""
    image, host = await private_image(node)
    await create_account(node, "bare")
    keys = {"requiredServiceAccountAnnotationKeys": ["test.io/id"]}
    await node.logins.use(token_plugin(host, **keys))
    await node.apply_static(always("static", image))
    plans = (with_account("bare", image, "bare"), with_account("lost", image, "lost"))
    for plan in plans:
        await node.api.create_pod(plan)
    for name in ("static", "bare", "lost"):
        await wait_waiting(node, name, "ErrImagePull")
    expect_equal(node, node.logins.asked("cloud"), [], "runs of the plug-in")
    await node.logins.use(token_plugin(host, requireServiceAccount=False))
    await wait_running(node, "static")
    bare = [run for run in node.logins.asked("cloud") if len(run.request) == 3]
    expect(node, bool(bare), "a run without a token", node.logins.asked("cloud"))


@conformance(id="logins-kept-by-account", rules=["BACK-216.5"], needs=NEEDS, since="1.34")
async def logins_are_kept_for_each_account_or_token(node: Node) -> None:
    """What a plug-in answers for a service account is kept for the pods of that account alone; with
    cacheType Token, for the pod alone whose token it got."""
    image, host = await private_image(node)
    for name in ("ann", "bob"):
        await create_account(node, name)
    runs = {}
    for cache in ("ServiceAccount", "Token"):
        await node.logins.use(token_plugin(host, cacheType=cache))
        before = len(node.logins.asked("cloud"))
        node.logins.answers("cloud", answer_of(host, cacheDuration="1h"))
        counts = []
        for name in ("ann-1", "ann-2", "bob-1"):
            plan = with_account(f"{cache.lower()}-{name}", image, name[:3])
            await node.api.create_pod(plan)
            await wait_running(node, plan.name)
            counts.append(len(node.logins.asked("cloud")) - before)
        runs[cache] = counts
    expected_runs = {"ServiceAccount": [1, 1, 2], "Token": [1, 2, 3]}
    expect_equal(node, runs, expected_runs, "runs of the plug-in after each pull")


@conformance(
    id="image-for-the-same-account", rules=["BACK-216.6", "BACK-210.2"], needs=NEEDS, since="1.35"
)
async def an_image_pulled_for_an_account_is_for_its_pods(node: Node) -> None:
    """An image that was pulled with a login for a service account may be used without a pull by
    other pods of that account, even after a restart; pods of another account must pull it."""
    image, host = await private_image(node)
    for name in ("ann", "bob"):
        await create_account(node, name)
    await node.logins.use(token_plugin(host))
    await node.api.create_pod(with_account("owner", image, "ann", "IfNotPresent"))
    await wait_running(node, "owner")
    await node.kubelet.restart()
    await node.api.create_pod(with_account("same", image, "ann", "IfNotPresent"))
    await wait_running(node, "same")
    expect_equal(node, len(pulls(node, image)), 1, "pulls for two pods of one account")
    node.logins.answers("cloud", answer_of(host, user="other"))
    await node.api.create_pod(with_account("guest", image, "bob", "IfNotPresent"))
    await wait_waiting(node, "guest", "ErrImagePull")
    expect_equal(node, users(node, image, "guest")[0], "other", "user of the guest's pull")


# --- the configuration ------------------------------------------------------------------------


@conformance(id="login-plugins-refused", rules=["CFG-014.2", "CFG-014.3"], needs=NEEDS)
async def wrong_plugins_are_refused(node: Node) -> None:
    """A kubelet does not start with a CredentialProviderConfig that is wrong, and names all that is
    wrong with it; nor when a program is missing."""
    wrong = {
        "provider name cannot contain '/'": LoginPlugin("a/b", ["reg.io"]),
        "provider name cannot contain spaces": LoginPlugin("a b", ["reg.io"]),
        "at least 1 item in matchImages is required": LoginPlugin("one", []),
        "match image is invalid": LoginPlugin("two", ["reg.io:port"]),
        'Unsupported value: "v2"': LoginPlugin("three", ["reg.io"], {"apiVersion": "v2"}),
        "must be greater than or equal to 0": LoginPlugin(
            "four", ["reg.io"], {"defaultCacheDuration": "-1s"}
        ),
    }
    error = await node.logins.refused(provider_config(*wrong.values()), "one", "two")
    expect_equal(node, [text for text in wrong if text not in error], [], "mistakes not told")
    error = await node.logins.refused(provider_config(LoginPlugin("gone", ["reg.io"])), "one")
    expect(node, "did not exist" in error, "the missing program is told", error)


@conformance(id="login-plugins-twice", rules=["CFG-014.1"], needs=NEEDS, since="1.33")
async def names_of_plugins_are_unique(node: Node) -> None:
    """A kubelet does not start with two plug-ins of one name."""
    twice = [LoginPlugin("cloud", [image]) for image in ("reg.io", "reg.test")]
    error = await node.logins.refused(provider_config(*twice), "cloud")
    words = r'duplicate (provider name|value:) \\?"cloud'  # kubelets before 1.34 say value:
    expect(node, re.search(words, error.lower()) is not None, "the duplicate is told", error)


@conformance(id="login-token-attributes-refused", rules=["CFG-014.4"], needs=NEEDS, since="1.34")
async def wrong_token_attributes_are_refused(node: Node) -> None:
    """A kubelet does not start with tokenAttributes that contradict themselves, or in a version of
    the configuration or of the protocol that does not have them."""
    both = {
        "requiredServiceAccountAnnotationKeys": ["test.io/id"],
        "optionalServiceAccountAnnotationKeys": ["test.io/id"],
    }
    wrong: dict[str, dict[str, Any]] = {
        "annotation keys cannot be both required and optional": both,
        "requireServiceAccount cannot be false": {**both, "requireServiceAccount": False},
        'Unsupported value: "Planet"': {"cacheType": "Planet"},
        "serviceAccountTokenAudience: Required value": {"serviceAccountTokenAudience": ""},
        "Duplicate value": {"optionalServiceAccountAnnotationKeys": ["test.io/a", "test.io/a"]},
    }
    for text, attributes in wrong.items():
        plugin = token_plugin("reg.io", **attributes)
        error = await node.logins.refused(provider_config(plugin), "cloud")
        expect(node, text in error, f"a refusal with {text!r}", error)
    old = provider_config(token_plugin("reg.io"), version="kubelet.config.k8s.io/v1beta1")
    error = await node.logins.refused(old, "cloud")
    expect(node, "tokenAttributes" in error, "the field that v1beta1 does not have is told", error)
    plugin = token_plugin("reg.io")
    older = LoginPlugin("cloud", ["reg.io"], {**plugin.more, "apiVersion": f"{PROTOCOL}beta1"})
    error = await node.logins.refused(provider_config(older), "cloud")
    expect(node, "tokenAttributes is only supported for" in error, "the protocol is told", error)

"""Users, groups, profiles and privileges of containers, as the runtime is told."""

from functools import partial
from typing import Any

from kubelet_conformance.cases.cri.common import container_config, started, waiting
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS
RUNTIME_DEFAULT, UNCONFINED, LOCALHOST = 0, 1, 2  # SecurityProfile.ProfileType
OLD = "container.apparmor.security.beta.kubernetes.io/"


def context_of(node: Node, name: str) -> Any:
    """The security context that the runtime is given for the container."""
    return container_config(node, name).linux.security_context


@conformance(id="cri-users-container-over-pod", rules=["LIFE-141.1", "LIFE-141.6"], needs=[STATUS])
async def each_field_of_the_container_wins_by_itself(node: Node) -> None:
    """A container's user and group win over those of its pod one by one, also when they are 0;
    fsGroup and supplementalGroups of the pod are groups of all its containers."""
    shared = {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [2001]}
    own: dict[str, dict[str, Any]] = {
        "none": {},
        "root": {"runAsUser": 0},
        "group": {"runAsGroup": 4000},
        "both": {"runAsUser": 1001, "runAsGroup": 0},
    }
    containers = [container(name, securityContext=fields) for name, fields in own.items()]
    await node.apply_static(pod("web", *containers, securityContext=shared))
    await node.wait_running("web", *own)
    users = {}
    for name in own:
        context = context_of(node, name)
        users[name] = (context.run_as_user.value, context.run_as_group.value)
        groups = list(context.supplemental_groups)
        expect_equal(node, groups, [2000, 2001], f"groups of {name}")
    expected = {"none": (1000, 3000), "root": (0, 3000), "group": (1000, 4000), "both": (1001, 0)}
    expect_equal(node, users, expected, "user and group")


@conformance(id="cri-privileges-as-asked", rules=["LIFE-141.1"], needs=[STATUS])
async def privileges_are_what_the_container_asks_for(node: Node) -> None:
    """Without fields of its own a container has no capabilities added or dropped, may gain
    privileges, writes to its root filesystem and has masked paths; SELinux options are its own,
    else its pod's."""
    strict = {
        "capabilities": {"add": ["NET_ADMIN"], "drop": ["CHOWN"]},
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "seLinuxOptions": {"level": "s0:c1"},
    }
    shared = {"seLinuxOptions": {"level": "s0:c9", "type": "own_t"}}
    containers = (container("strict", securityContext=strict), container("plain"))
    await node.apply_static(pod("web", *containers, securityContext=shared))
    await node.run_until(
        lambda: node.count("CreateContainer", pod="web") >= 2, within_s=limits.START_S
    )
    privileges = {}
    for name in ("strict", "plain"):
        context = context_of(node, name)
        able = context.capabilities
        privileges[name] = (
            list(able.add_capabilities),
            list(able.drop_capabilities),
            context.readonly_rootfs,
            context.no_new_privs,
            (context.selinux_options.level, context.selinux_options.type),
        )
    expected_privileges = {
        "strict": (["NET_ADMIN"], ["CHOWN"], True, True, ("s0:c1", "")),
        "plain": ([], [], False, False, ("s0:c9", "own_t")),
    }
    privilege_names = "capabilities added, dropped, read-only root, no new privileges, SELinux"
    expect_equal(node, privileges, expected_privileges, privilege_names)
    expect(node, "/proc/kcore" in context_of(node, "plain").masked_paths, "/proc/kcore masked")


@conformance(
    id="cri-proc-unmasked",
    rules=["LIFE-141.1"],
    needs=[STATUS, Feature.USER_NAMESPACES],
    since="1.33",
)
async def an_unmasked_proc_has_no_masked_paths(node: Node) -> None:
    """With procMount Unmasked nothing is masked or read-only."""
    bare = container("main", securityContext={"procMount": "Unmasked"})
    await node.apply_static(pod("web", bare, hostUsers=False))
    await started(node, "web")
    context = context_of(node, "main")
    paths = (list(context.masked_paths), list(context.readonly_paths))
    expect_equal(node, paths, ([], []), "masked paths, read-only paths")


@conformance(id="cri-user-of-the-image", rules=["LIFE-141.2"], needs=[STATUS, FAULTS], alone=True)
async def without_a_user_in_the_spec_the_images_counts(node: Node) -> None:
    """The user of the image, a number or a name, is told to the runtime where the spec has none; an
    image without one runs as user 0."""

    def numbered(answer: Any) -> None:
        answer.image.username = ""
        answer.image.uid.value = 4711

    def named(answer: Any) -> None:
        answer.image.ClearField("uid")
        answer.image.username = "nobody"

    def nothing(answer: Any) -> None:
        answer.image.ClearField("uid")
        answer.image.username = ""

    def created(name: str) -> bool:
        return node.count("CreateContainer", pod=name) >= 2

    users = {}
    for name, change in (("numbered", numbered), ("named", named), ("nothing", nothing)):
        with node.runtime.on("ImageStatus").changes_answer(change):
            own = container("own", securityContext={"runAsUser": 12})
            await node.apply_static(pod(name, container(f"in-{name}"), own))
            await node.run_until(
                partial(created, name),
                within_s=limits.START_S,
                what=f"containers of {name}",
            )
        context = context_of(node, f"in-{name}")
        users[name] = (context.run_as_user.value, context.run_as_username)
        (last,) = node.calls("CreateContainer", pod=name, container="own")[-1:]
        user = last.request.config.linux.security_context.run_as_user.value
        expect_equal(node, user, 12, f"user of the spec, with an image of {name}")
    expected = {"numbered": (4711, ""), "named": (0, "nobody"), "nothing": (0, "")}
    expect_equal(node, users, expected, "user and user's name")


@conformance(id="cri-non-root-image", rules=["LIFE-141.3"], needs=[STATUS, FAULTS], alone=True)
async def an_image_that_may_be_root_is_not_started_as_non_root(node: Node) -> None:
    """With runAsNonRoot a container whose image runs as root, or as a user that only has a name,
    waits with CreateContainerConfigError; one with runAsNonRoot false, or with a user of its own,
    starts."""

    def named(answer: Any) -> None:
        answer.image.ClearField("uid")
        answer.image.username = "nobody"

    def root(answer: Any) -> None:
        answer.image.username = ""
        answer.image.uid.value = 0

    texts = {
        "named": "container has runAsNonRoot and image has non-numeric user (nobody), cannot "
        "verify user is non-root",
        "root": "container has runAsNonRoot and image will run as root",
    }
    for name, change in (("named", named), ("root", root)):
        with node.runtime.on("ImageStatus").changes_answer(change):
            allowed = container("allowed", securityContext={"runAsNonRoot": False})
            own = container("own", securityContext={"runAsUser": 12})
            plan = pod(
                name, container("main"), allowed, own, securityContext={"runAsNonRoot": True}
            )
            await node.apply_static(plan)
            message = await waiting(node, name, "main", "CreateContainerConfigError")
            expect(node, message.startswith(texts[name]), texts[name], message)
            await node.wait_running(name, "allowed", "own")
            creations = node.count("CreateContainer", pod=name, container="main")
            expect_equal(node, creations, 0, "creations of main")


@conformance(
    id="cri-seccomp-profiles",
    rules=["LIFE-141.4"],
    needs=[STATUS],
    node_config={"seccompDefault": True},
)
async def seccomp_profiles_are_the_containers_or_the_pods_or_the_default(node: Node) -> None:
    """With seccompDefault a container without a profile has the runtime's; Unconfined stays
    unconfined, the container's own wins over its pod's, and a Localhost profile is a file below the
    kubelet's directory."""
    kinds = {"none": "", "open": "Unconfined"}
    for name, kind in kinds.items():
        context = {"seccompProfile": {"type": kind}}
        fields: dict[str, Any] = {"securityContext": context} if kind else {}
        await node.apply_static(pod(name, container(f"in-{name}", **fields)))
    own = {"seccompProfile": {"type": "RuntimeDefault"}}
    shared = {"seccompProfile": {"type": "Unconfined"}}
    both = container("own", securityContext=own), container("shared")
    await node.apply_static(pod("both", *both, securityContext=shared))
    local = {"seccompProfile": {"type": "Localhost", "localhostProfile": "mine/strict.json"}}
    await node.apply_static(pod("local", container("in-local", securityContext=local)))
    names = ("in-none", "in-open", "own", "shared", "in-local")
    await node.run_until(
        lambda: all(node.count("CreateContainer", container=name) for name in names),
        within_s=2 * limits.START_S,
        what="all containers are created",
    )
    profiles = {name: context_of(node, name).seccomp.profile_type for name in names}
    expected_profiles = {
        "in-none": RUNTIME_DEFAULT,
        "in-open": UNCONFINED,
        "own": RUNTIME_DEFAULT,
        "shared": UNCONFINED,
        "in-local": LOCALHOST,
    }
    expect_equal(node, profiles, expected_profiles, "seccomp profiles")
    path = context_of(node, "in-local").seccomp.localhost_ref
    right = path.startswith("/") and path.endswith("/seccomp/mine/strict.json")
    expect(node, right, "<root>/seccomp/mine/strict.json", path)


@conformance(
    id="cri-apparmor-profiles",
    rules=["LIFE-141.5"],
    needs=[STATUS, Feature.USER_NAMESPACES, Feature.APPARMOR],
)
async def apparmor_is_told_in_both_forms(node: Node) -> None:
    """The AppArmor profile is that of the container, else of its old annotation, else of the pod,
    and is told in the new and in the old field. (A pod whose annotation and field tell different
    profiles of one container is not valid.)"""
    own = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "mine"}}
    shared = {"appArmorProfile": {"type": "RuntimeDefault"}}
    containers = [container("own", securityContext=own), container("plain")]
    await node.apply_static(pod("web", *containers, securityContext=shared))
    notes = {"annotations": {f"{OLD}noted": "unconfined"}}
    await node.apply_static(pod("old", container("noted"), metadata=notes))
    await node.wait_running("web", "own", "plain")
    await node.wait_running("old", "noted")
    profiles = {}
    for name in ("own", "noted", "plain"):
        context = context_of(node, name)
        kind, ref = context.apparmor.profile_type, context.apparmor.localhost_ref
        profiles[name] = (kind, ref, context.apparmor_profile)
    expected_profiles = {
        "own": (LOCALHOST, "mine", "localhost/mine"),
        "noted": (UNCONFINED, "", "unconfined"),
        "plain": (RUNTIME_DEFAULT, "", "runtime/default"),
    }
    expect_equal(node, profiles, expected_profiles, "AppArmor profile: type, name, old form")

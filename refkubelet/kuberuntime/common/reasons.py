"""The reasons and messages of starts, sandboxes and kills in statuses and events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubeobjects.golang.strconv import quoted

# Waiting reasons of containers (LIFE-131).
CRASH_LOOP_BACK_OFF: Final = "CrashLoopBackOff"  # BACK-009
ERR_IMAGE_PULL: Final = "ErrImagePull"  # BACK-205
IMAGE_PULL_BACK_OFF: Final = "ImagePullBackOff"  # BACK-206
ERR_IMAGE_NEVER_PULL: Final = "ErrImageNeverPull"  # BACK-202
INVALID_IMAGE_NAME: Final = "InvalidImageName"  # BACK-201
IMAGE_INSPECT_ERROR: Final = "ImageInspectError"  # BACK-203
REGISTRY_UNAVAILABLE: Final = "RegistryUnavailable"  # BACK-205
SIGNATURE_VALIDATION_FAILED: Final = "SignatureValidationFailed"  # BACK-205
CREATE_CONTAINER_CONFIG_ERROR: Final = "CreateContainerConfigError"
CREATE_CONTAINER_ERROR: Final = "CreateContainerError"
RUN_CONTAINER_ERROR: Final = "RunContainerError"
POST_START_HOOK_ERROR: Final = "PostStartHookError"

# Errors of whole-pod steps.
KILL_CONTAINER_ERROR: Final = "KillContainerError"
REMOVE_CONTAINER_ERROR: Final = "RemoveContainerError"
KILL_POD_SANDBOX_ERROR: Final = "KillPodSandboxError"
CREATE_POD_SANDBOX_ERROR: Final = "CreatePodSandboxError"
CONFIG_POD_SANDBOX_ERROR: Final = "ConfigPodSandboxError"
RESIZE_POD_ERROR: Final = "ResizePodInPlaceError"

# Event reasons (LIFE-240..243).
EVENT_FAILED_CLAIMS: Final = "FailedPrepareDynamicResources"
EVENT_CREATED: Final = "Created"
EVENT_STARTED: Final = "Started"
EVENT_KILLING: Final = "Killing"
EVENT_FAILED: Final = "Failed"
EVENT_PULLING: Final = "Pulling"
EVENT_PULLED: Final = "Pulled"
EVENT_BACK_OFF: Final = "BackOff"
EVENT_INSPECT_FAILED: Final = "InspectFailed"
EVENT_NO_PULL_SECRET: Final = "FailedToRetrieveImagePullSecret"  # BACK-209
EVENT_ERR_IMAGE_NEVER_PULL: Final = "ErrImageNeverPull"
EVENT_FAILED_POST_START_HOOK: Final = "FailedPostStartHook"
EVENT_FAILED_PRE_STOP_HOOK: Final = "FailedPreStopHook"
EVENT_SANDBOX_CHANGED: Final = "SandboxChanged"
EVENT_FAILED_CREATE_SANDBOX: Final = "FailedCreatePodSandBox"
EVENT_FAILED_SANDBOX_STATUS: Final = "FailedPodSandBoxStatus"
EVENT_MISSING_CLUSTER_DNS: Final = "MissingClusterDNS"
EVENT_DNS_CONFIG_FORMING: Final = "DNSConfigForming"
EVENT_CHECK_RESOLV_CONF: Final = "CheckLimitsForResolvConf"

# Event messages.
CONTAINER_CREATED: Final = "Container created"  # LIFE-240
CONTAINER_STARTED: Final = "Container started"  # LIFE-240
SANDBOX_CHANGED: Final = "Pod sandbox changed, it will be killed and re-created."  # LIFE-243
POST_START_HOOK_FAILED: Final = "PostStartHook failed"  # LIFE-142
PRE_STOP_HOOK_FAILED: Final = "PreStopHook failed"  # LIFE-143
KILLING_FOR_RESET: Final = "killing"  # LIFE-125


def stopping(container_name: str) -> str:
    """The message of a Killing event without another reason (LIFE-240)."""
    return f"Stopping container {container_name}"


def back_off_event(container_name: str, pod_ref: str) -> str:
    """The event message of a start that waits for its back-off (LIFE-242, BACK-008)."""
    return f"Back-off restarting failed container {container_name} in pod {pod_ref}"


def back_off_message(duration: str, container_name: str, pod_ref: str) -> str:
    """The waiting message during a back-off of `duration`, as Go prints it (BACK-009)."""
    return f"back-off {duration} restarting failed container={container_name} pod={pod_ref}"


def pulling(image: str) -> str:
    """The event message before a pull (BACK-204)."""
    return f"Pulling image {quoted(image)}"


def pulled(image: str, took: str, took_in_all: str, size_bytes: int) -> str:
    """The event message after a pull; the times as Go prints them (BACK-204)."""
    return (
        f"Successfully pulled image {quoted(image)} in {took} ({took_in_all} including waiting). "
        f"Image size: {size_bytes} bytes."
    )


def already_present(image: str, *, verified: bool = True) -> str:
    """The event message for a present image (BACK-202). `verified`: it was checked that the pod may
    use it (BACK-210)."""
    ending = " and can be accessed by the pod" if verified else ""
    return f"Container image {quoted(image)} already present on machine{ending}"


def failed_to_pull(image: str, error: str) -> str:
    """The event message of a pull that failed (BACK-204)."""
    return f"Failed to pull image {quoted(image)}: {error}"


def back_off_pulling(image: str) -> str:
    """The event message of a pull in back-off, and the begin of its waiting message (BACK-206)."""
    return f"Back-off pulling image {quoted(image)}"


def not_present(image: str) -> str:
    """The message for an absent image that must not be pulled (BACK-202)."""
    return f"Container image {quoted(image)} is not present with pull policy of Never"


def failed_to_inspect(error: str) -> str:
    """The message of an image that cannot be inspected; its name stays empty (BACK-203)."""
    return f'Failed to inspect image "": {error}'


def invalid_image(image: str, why: str) -> str:
    """The message for an image name that cannot be parsed (BACK-201)."""
    name = quoted(image)
    return f"Failed to apply default image tag {name}: couldn't parse image name {name}: {why}"


def intent_not_recorded(image: str, error: str) -> str:
    """The message of a pull that is not tried because it could not be recorded (BACK-211)."""
    return (
        f"Failed to record image pull intent for container image {quoted(image)}: "
        f"failed to record image pull intent: {error}"
    )


def pull_secrets_missing(names: Iterable[str]) -> str:
    """The event message about pull secrets that cannot be read (BACK-209)."""
    return (
        f"Unable to retrieve some image pull secrets ({', '.join(names)}); attempting to pull the "
        "image may not succeed."
    )


MISSING_CLUSTER_DNS: Final = (  # LIFE-135; also for pods with ClusterFirstWithHostNet
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" '
    'policy. Falling back to "Default" policy.'
)


def missing_cluster_dns(pod_ref: str) -> str:
    """The event message about the pod; the node's event has `MISSING_CLUSTER_DNS` (LIFE-135)."""
    return f"pod: {quoted(pod_ref)}. {MISSING_CLUSTER_DNS}"

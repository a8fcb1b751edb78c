"""Plans and creates the sandbox in which a pod's containers start (LIFE-130).

What must never happen: a sandbox without its log directory, or for a pod with resource claims or a
runtime class that this node cannot serve.
Upstream: pkg/kubelet/kuberuntime/kuberuntime_sandbox.go; kuberuntime_manager.go: SyncPod.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from refkubelet.cri.client import CriClient
from refkubelet.cri.records import DEFAULT_RUNTIME, PodRuntime, PodRuntimeError
from refkubelet.cri.target import CriCallError
from refkubelet.host.directories import LOG_DIRECTORY_MODE, make_directory
from refkubelet.kuberuntime.common import reasons
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.dns import dns_problems, needs_missing_cluster_dns_event
from refkubelet.kuberuntime.config.sandbox import SandboxConfigError, sandbox_config
from refkubelet.kuberuntime.decisions.pod_actions import PodActions
from refkubelet.kuberuntime.resource_claims import prepare_error
from refkubelet.kuberuntime.results import SyncAction, SyncError
from refkubelet.model.objects import Pod
from refkubelet.model.pod import has_user_namespace, pod_ref, uid, uses_host_network


class NoSandboxError(Exception):
    """There is no sandbox, and the sync ends. `error`: for the result of the sync; None: no error
    is reported, and the next sync tries again."""

    def __init__(self, error: SyncError | None) -> None:
        self.error = error
        super().__init__(error)


class SandboxPlan(Struct, frozen=True):
    """The PodSandboxConfig, and the pod's settings of the runtime. The calls for containers need
    both, also in an existing sandbox."""

    config: Any
    runtime: PodRuntime


class PodSandboxes:
    """Plans and creates sandboxes."""

    def __init__(self, client: CriClient, deps: RuntimeDeps, options: RuntimeOptions) -> None:
        self._client = client
        self._deps = deps
        self._options = options

    async def plan(self, pod: Pod, actions: PodActions) -> SandboxPlan:
        """Plan the sandbox that `actions` keep or create, and make the log directory of a new one.
        Raises `NoSandboxError`."""
        if needs_missing_cluster_dns_event(pod, self._options.dns):
            reason, text = reasons.EVENT_MISSING_CLUSTER_DNS, reasons.MISSING_CLUSTER_DNS
            self._deps.events.node_event("Warning", reason, text)
            self._warn(pod, reason, reasons.missing_cluster_dns(pod_ref(pod)))
        for text in dns_problems(pod, self._options.dns):
            self._warn(pod, reasons.EVENT_DNS_CONFIG_FORMING, text)
        if actions.create_sandbox:
            self._deps.measures.metrics.started.pods.inc()
            if has_user_namespace(pod):
                self._deps.measures.metrics.started.user_namespaced.inc()
            await self._prepare_claims(pod)
        runtime = await self._pod_runtime(pod)
        return SandboxPlan(self._config(pod, actions, runtime), runtime)

    async def create(self, pod: Pod, plan: SandboxPlan) -> tuple[str, tuple[str, ...]]:
        """Run a new sandbox; returns its id and the pod's addresses (none in the host network).
        Raises `NoSandboxError`."""
        try:
            sandbox_id = await self._client.run_pod_sandbox(plan.config, plan.runtime.handler)
        except CriCallError as error:
            raise self._not_created(pod, error.text) from None
        try:
            record = await self._client.pod_sandbox_status(sandbox_id)
        except CriCallError as error:
            text = f"Unable to get pod sandbox status: {error.text}"
            self._warn(pod, reasons.EVENT_FAILED_SANDBOX_STATUS, text)
            reason, name = reasons.CONFIG_POD_SANDBOX_ERROR, pod.metadata.name or ""
            failed = SyncError(SyncAction.CONFIG_SANDBOX, name, reason, error.text)
            raise NoSandboxError(failed) from None
        return sandbox_id, () if uses_host_network(pod) else record.ips

    async def _prepare_claims(self, pod: Pod) -> None:
        """Raise `NoSandboxError` for a pod with resource claims that cannot be prepared (LIFE-130
        step 4)."""
        why = await prepare_error(pod, self._deps.api.claims)
        if why is not None:
            text = f"Failed to prepare dynamic resources: {why}"
            self._warn(pod, reasons.EVENT_FAILED_CLAIMS, text)
            raise NoSandboxError(None)

    async def _pod_runtime(self, pod: Pod) -> PodRuntime:
        source = self._deps.node.runtimes
        try:
            return await source.of(pod) if source is not None else DEFAULT_RUNTIME
        except PodRuntimeError as error:
            raise self._not_created(pod, str(error)) from None

    def _config(self, pod: Pod, actions: PodActions, runtime: PodRuntime) -> Any:
        placements = self._deps.node.placements
        own_cpus = placements is not None and placements.has_exclusive_cpus(pod)
        try:
            config = sandbox_config(pod, actions.attempt, self._options, runtime, own_cpus=own_cpus)
            if actions.create_sandbox:
                make_directory(config.log_directory, LOG_DIRECTORY_MODE)
        except (SandboxConfigError, OSError, ValueError) as error:
            raise self._not_created(pod, str(error)) from None
        return config

    def _not_created(self, pod: Pod, text: str) -> NoSandboxError:
        """The error of a sandbox that was not created, with an event; without both if the pod is
        terminating (LIFE-130)."""
        if self._deps.pods.terminating(uid(pod)):
            return NoSandboxError(None)
        self._deps.measures.metrics.started.pod_errors.inc()
        message = f"Failed to create pod sandbox: {text}"
        self._warn(pod, reasons.EVENT_FAILED_CREATE_SANDBOX, message)
        reason, name = reasons.CREATE_POD_SANDBOX_ERROR, pod.metadata.name or ""
        return NoSandboxError(SyncError(SyncAction.CREATE_SANDBOX, name, reason, text))

    def _warn(self, pod: Pod, reason: str, message: str) -> None:
        self._deps.events.pod_event(pod, "Warning", reason, message)

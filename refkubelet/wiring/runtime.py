"""The runtime and what is known of it: manager, pod cache, PLEG, state."""

from __future__ import annotations

from msgspec import Struct

from refkubelet.config import ConfigError
from refkubelet.container_manager.cgroups.build import before_the_first_pod
from refkubelet.kuberuntime.common.runtime_deps import (
    ApiReaders,
    Measures,
    NodeShares,
    PodFacts,
    RuntimeDeps,
)
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.gc import ContainerDeletor
from refkubelet.kuberuntime.images.callers import Callers
from refkubelet.kuberuntime.images.plugins import CredentialPlugins, PluginDeps
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.kuberuntime.object_source import VariableObjects
from refkubelet.kuberuntime.options_from_config import (
    Surroundings,
    ids_per_pod,
    resolv_conf_event,
    runtime_options,
)
from refkubelet.kuberuntime.pod_runtime import PodRuntimes
from refkubelet.kuberuntime.reading.pod_events import PodEventReader
from refkubelet.kuberuntime.user_namespaces import UserNamespaceError, UserNamespaces
from refkubelet.pleg.cache import PodCache
from refkubelet.pleg.evented import RARELY, EventedPLEG
from refkubelet.pleg.generic import GenericPLEG
from refkubelet.pleg.relist_options import PlegOptions
from refkubelet.sync_loop.runtime_state import RuntimeState, RuntimeWatch
from refkubelet.wiring.base import Base
from refkubelet.wiring.objects import Objects
from refkubelet.wiring.resources import Resources


class Pleg(Struct, frozen=True):
    """`cache`: what the PLEG saw last of every pod; `evented` None: its gate is off."""

    cache: PodCache
    generic: GenericPLEG
    evented: EventedPLEG | None


class RuntimeParts(Struct, frozen=True):
    """The runtime manager with what its parts share, and what observes the runtime."""

    deps: RuntimeDeps
    """What all parts of the runtime manager take, as `options`."""
    options: RuntimeOptions  # of the node, from the configuration
    manager: RuntimeManager  # reads, syncs and kills pods
    deletions: ContainerDeletor
    """Removes containers at once, when a pod has too many dead ones."""
    pod_runtimes: PodRuntimes  # handler and user namespace of each pod
    users: UserNamespaces  # which pod has which IDs of the node
    variables: VariableObjects | None
    """Services, ConfigMaps and Secrets for variables; None: no API server."""
    login_plugins: CredentialPlugins | None
    """None: there are no credential provider plug-ins."""
    pleg: Pleg  # tells what changed
    state: RuntimeState  # whether the runtime can be worked with
    watch: RuntimeWatch  # asks the runtime how it is
    resolv_conf_problem: str | None
    """What pods cannot have of the node's resolv.conf; None: nothing (NODE-221)."""


def build_runtime(base: Base, resources: Resources, objects: Objects | None) -> RuntimeParts:
    """Raises `ConfigError`: pods have user IDs that this configuration could give twice."""
    deps, later = base.deps, base.later
    users = _users(base)
    variables = (
        VariableObjects(deps.api, objects.of_pods, deps.clock, deps.rng)
        if deps.api and objects
        else None
    )
    pod_runtimes = PodRuntimes(
        deps.api,
        lambda: state.handlers,
        users,
    )
    login_plugins = _login_plugins(base, objects)
    runtime_deps = _deps(
        base,
        resources,
        objects,
        variables=variables,
        pod_runtimes=pod_runtimes,
        login_plugins=login_plugins,
    )
    options = _options(base)
    manager = RuntimeManager(base.client, runtime_deps, options)
    pleg = _pleg(base, manager, options)
    healthy = pleg.evented.healthy if pleg.evented is not None else lambda: None
    state = RuntimeState(base.awake, pleg.generic.healthy, healthy)
    watch = RuntimeWatch(
        base.client,
        state,
        deps.clock,
        lambda: before_the_first_pod(deps.machine, later.cgroups(), base.recorder),
    )
    return RuntimeParts(
        deps=runtime_deps,
        options=options,
        manager=manager,
        deletions=ContainerDeletor(base.client, options, deps.clock),
        pod_runtimes=pod_runtimes,
        users=users,
        variables=variables,
        login_plugins=login_plugins,
        pleg=pleg,
        state=state,
        watch=watch,
        resolv_conf_problem=resolv_conf_event(base.config),
    )


def _deps(
    base: Base,
    resources: Resources,
    objects: Objects | None,
    *,
    variables: VariableObjects | None,
    pod_runtimes: PodRuntimes,
    login_plugins: CredentialPlugins | None,
) -> RuntimeDeps:
    deps = base.deps
    later = base.later
    return RuntimeDeps(
        clock=deps.clock,
        ids=deps.ids,
        events=base.recorder,
        network=deps.network,
        login_plugins=login_plugins,
        api=ApiReaders(variables, objects.of_pods if objects is not None else None, deps.api),
        pods=PodFacts(
            terminating=later.is_terminating,
            give_way=later.give_way,
            last_status=later.status,
            claimed=lambda pod_uid: later.volumes().claimed(pod_uid),
        ),
        node=NodeShares(
            devices=resources.devices,
            placements=resources.managers,
            runtimes=pod_runtimes,
            actuated=resources.allocation.actuated,
            pod_cgroups=later.cgroups,
            mounts=deps.mounts,
        ),
        measures=Measures(base.metrics, base.latency, deps.spans),
    )


def _users(base: Base) -> UserNamespaces:
    config = base.config
    try:
        return UserNamespaces(base.deps.directories.root, ids_per_pod(config), config.max_pods)
    except UserNamespaceError as error:
        raise ConfigError(str(error)) from None


def _login_plugins(base: Base, objects: Objects | None) -> CredentialPlugins | None:
    deps = base.deps
    if deps.plugins.logins is None:
        return None
    settings = deps.plugins.logins
    callers = Callers(deps.api, objects.tokens) if objects is not None else Callers()
    return CredentialPlugins(
        settings.config.providers,
        PluginDeps(
            settings.programs,
            deps.clock,
            callers,
            bin_dir=settings.config.bin_dir,
            environment=settings.environment,
            config_hash=settings.config.config_hash,
        ),
    )


def _options(base: Base) -> RuntimeOptions:
    deps = base.deps
    around = Surroundings(
        node_name=deps.node.name,
        node_ips=deps.node.ips,
        has_api=deps.api is not None,
        root_dir=deps.directories.root,
        container_logs_dir=deps.directories.container_logs,
        allocatable=deps.node.facts.allocatable if deps.node.facts else {},
        login_dirs=deps.directories.logins,
    )
    return runtime_options(base.config, deps.machine, around)


def _pleg(base: Base, manager: RuntimeManager, options: RuntimeOptions) -> Pleg:
    clock = base.deps.clock
    by_events = base.gate("EventedPLEG", default=False)
    cache = PodCache(clock)
    options_of_pleg = RARELY if by_events else PlegOptions()
    generic = GenericPLEG(manager, cache, clock, options_of_pleg, base.awake)
    if not by_events:
        return Pleg(cache, generic, None)
    events = PodEventReader(base.client, options.own_directories).events
    return Pleg(cache, generic, EventedPLEG(generic, events, cache, clock))

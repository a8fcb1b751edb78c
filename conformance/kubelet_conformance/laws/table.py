"""The table of laws."""

from __future__ import annotations

from typing import Final

from kubelet_conformance.laws import alone, calls, calm, containers, endings, requests, statuses

LAWS: Final = (
    containers.one_running,
    containers.one_sandbox,
    containers.one_static,
    containers.attempts_grow,
    containers.nothing_after_its_end,
    containers.init_in_order,
    containers.policy_obeyed,
    containers.backed_off,
    calls.no_mistaken_call,
    calls.no_haste,
    calls.removed_when_over,
    calls.grace_kept,
    calls.nothing_in_what_is_over,
    alone.given_once,
    alone.user_ids_given_once,
    statuses.phases_go_on,
    statuses.restarts_go_up,
    statuses.ready_while_running,
    statuses.conditions_agree,
    statuses.transitions_have_times,
    statuses.as_the_runtime_had_it,
    statuses.counted_as_made,
    statuses.start_time_kept,
    statuses.addresses_of_sandbox,
    statuses.generation_not_back,
    requests.only_what_it_may,
    requests.nothing_refused,
    requests.no_equal_writes,
    requests.events_as_often,
    requests.events_of_what_is_there,
    calm.wanted_pods_go_on,
    calm.nothing_else_runs,
    calm.told_as_it_is,
    calm.mirrors_agree,
    calm.quiet_while_calm,
    endings.nothing_left,
    endings.no_unexpected_error,
)
"""All laws that are asked after every case."""

"""The admission plug-in ServiceAccount: every new pod gets an account, and the token of it.

Upstream: plugin/pkg/admission/serviceaccount/admission.go.
"""

from __future__ import annotations

from fakekubeapi.errors import forbidden
from fakekubeapi.resources.service_accounts import (
    DEFAULT_ACCOUNT,
    VOLUME_PREFIX,
    add_account,
    mirror_problem,
)
from fakekubeapi.storage.changes import Key, Object
from fakekubeapi.storage.store import Store
from kubeobjects.pods.annotations import MIRROR
from simclock import Ids


def admit_service_account(store: Store, ids: Ids, pod: Object) -> None:
    """Complete a new pod in place. Raises: StatusError 403 for a pod whose account does not exist,
    and for a mirror pod that names an account, a secret or a token."""
    name = pod["metadata"].get("name", "")
    namespace = pod["metadata"].get("namespace", "")
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        problem = mirror_problem(pod)
        if problem:
            raise forbidden("pods", name, problem)
        return
    account_name = pod["spec"].get("serviceAccountName") or DEFAULT_ACCOUNT
    account = store.get(Key("serviceaccounts", namespace, account_name))
    if account is None:
        why = (
            f"error looking up service account {namespace}/{account_name}: "
            f'serviceaccount "{account_name}" not found'
        )
        raise forbidden("pods", name, why)
    add_account(pod, account, VOLUME_PREFIX + ids.hex(5))

"""Trust anchors of ClusterTrustBundles for projected volumes (NODE-213).

All bundles are followed by one watch, which begins with the first volume that wants one. What must
never happen here: anything but certificates reaches a volume.
Upstream: pkg/kubelet/clustertrustbundle/clustertrustbundle_manager.go.
"""

from __future__ import annotations

import asyncio
from typing import Final

from lightkube.models.certificates_v1beta1 import ClusterTrustBundle
from lightkube.models.meta_v1 import LabelSelector

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import TRUST_BUNDLES
from refkubelet.api.reflector import Reflector
from refkubelet.object_manager.anchors import anchors_of, selector_problem, selects
from simclock import Clock, Rng

NOT_SYNCED: Final = "ClusterTrustBundle informer has not yet synced"
NONE_MATCHED: Final = "combination of signerName and labelSelector matched zero ClusterTrustBundles"


class TrustBundleManager:
    """The trust anchors of volumes, from the API server."""

    def __init__(self, api: ApiClient, clock: Clock, rng: Rng) -> None:
        self._bundles: tuple[ClusterTrustBundle, ...] | None = None
        self._wanted = asyncio.Event()
        self._random = rng.stream("trust bundles")
        self._reflector = Reflector(api, TRUST_BUNDLES, self._take, clock=clock, rng=rng)

    async def run(self) -> None:
        """Follow the bundles, once they are wanted, until cancelled."""
        await self._wanted.wait()
        await self._reflector.run()

    async def _take(self, bundles: tuple[ClusterTrustBundle, ...]) -> None:
        self._bundles = bundles

    async def by_name(self, name: str, *, allow_missing: bool) -> bytes:
        """The anchors of one bundle as PEM; `allow_missing`: none if there is no such bundle.
        Raises `ApiError`."""
        bundles = [b for b in self._synced() if b.metadata and b.metadata.name == name]
        if not bundles and not allow_missing:
            text = (
                "while getting ClusterTrustBundle: "
                f'clustertrustbundle.certificates.k8s.io "{name}" not found'
            )
            raise ApiError(404, "NotFound", text)
        return anchors_of((b.spec.trustBundle for b in bundles), self._random.shuffle)

    async def by_signer(
        self, signer: str, selector: LabelSelector | None, *, allow_missing: bool
    ) -> bytes:
        """The anchors of all bundles of a signer that the selector selects (None: none, an empty
        one: all). Raises `ApiError`."""
        bundles = self._synced()
        problem = selector_problem(selector)
        if problem is not None:
            raise ApiError(0, "BadSelector", f"while parsing label selector: {problem}")
        matching = [
            bundle
            for bundle in bundles
            if (bundle.spec.signerName or "") == signer
            and selects(selector, (bundle.metadata.labels if bundle.metadata else None) or {})
        ]
        if not matching and not allow_missing:
            raise ApiError(404, "NotFound", NONE_MATCHED)
        return anchors_of((b.spec.trustBundle for b in matching), self._random.shuffle)

    def _synced(self) -> tuple[ClusterTrustBundle, ...]:
        self._wanted.set()
        if self._bundles is None:
            raise ApiError(0, "NotSynced", NOT_SYNCED)
        return self._bundles

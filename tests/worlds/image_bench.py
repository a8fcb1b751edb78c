"""An image manager over a scripted runtime, for tests in virtual time."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Secret
from lightkube.models.meta_v1 import ObjectMeta
from loops import virtual_loop
from pods import IMAGE, make_pod
from runtime_doubles import IMAGE_ID, Events, Failure, ScriptedTarget

from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import LoginPlugins, RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import (
    ImageOptions,
    RuntimeOptions,
)
from refkubelet.kuberuntime.images.manager import (
    ImageError,
    ImageManager,
    ImageRequest,
)
from simclock import Ids, Rng

UNKNOWN = grpc.StatusCode.UNKNOWN
ABSENT = cri.ImageStatusResponse()
PULLED = cri.PullImageResponse(image_ref=IMAGE_ID)
DEFAULT = ImageOptions()
HUB = "https://index.docker.io/v1/"  # upstream takes localhost for it


class Bench:
    """An image manager over a scripted runtime, in virtual time."""

    def __init__(self, root: Path, options: ImageOptions = DEFAULT, **answers: Any) -> None:
        loop = virtual_loop()
        self.root, self.options = root, options
        self.clock = loop.clock
        self.target = ScriptedTarget(**answers)
        self.events = Events()
        self.plugins: LoginPlugins | None = None
        self.restart()

    def restart(self) -> None:
        """As a kubelet that starts again over the same directory."""
        deps = RuntimeDeps(self.clock, Ids(Rng(0)), self.events, login_plugins=self.plugins)
        options = RuntimeOptions(self.root, self.root / "logs", images=self.options)
        self.images = ImageManager(CriClient(self.target), deps, options)

    async def ensure(
        self, *secrets: Secret, image: str = IMAGE, policy: str = "", uid: str = "u"
    ) -> str:
        pod = make_pod(meta={"uid": uid, "name": uid})
        return await self.images.ensure_image(
            ImageRequest(
                pod, image, policy, sandbox_config=cri.PodSandboxConfig(), pull_secrets=secrets
            )
        )

    async def reason(self, *secrets: Secret, **request: Any) -> tuple[str, str]:
        with pytest.raises(ImageError) as raised:
            await self.ensure(*secrets, **request)
        return raised.value.reason, raised.value.message

    def users(self) -> list[str]:
        return [r.auth.username for r in self.target.requests("PullImage")]


def login(user: str, *places: str, name: str = "", uid: str = "", password: str = "p") -> Secret:
    auths = {place: {"username": user, "password": password} for place in places or (HUB,)}
    text = json.dumps({"auths": auths})
    name = name or user
    return Secret(
        metadata=ObjectMeta(name=name, namespace="default", uid=uid or f"uid-{name}"),
        type="kubernetes.io/dockerconfigjson",
        data={".dockerconfigjson": base64.b64encode(text.encode()).decode()},
    )


def only(*users: str) -> Callable[[Any], Any]:
    """A registry that lets these users in, each refused with a text of its own."""

    def pull(request: Any) -> Any:
        name = request.auth.username
        return PULLED if name in users else Failure(UNKNOWN, f"no entry for {name or 'nobody'}")

    return pull

"""The image step by itself: credentials, turns, rates, who may use what (BACK-204..212)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from criapi.v1 import api_pb2 as cri
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import Secret
from lightkube.models.meta_v1 import ObjectMeta
from runtime_doubles import IMAGE, IMAGE_ID, Events, Failure, ScriptedTarget, make_pod

from refkubelet.api.client import ApiError
from refkubelet.config.image_policies import ALWAYS_VERIFY
from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import (
    ImageOptions,
    RuntimeOptions,
    VerificationPolicy,
)
from refkubelet.kuberuntime.images.manager import (
    ImageError,
    ImageManager,
    ImageRequest,
    whole_milliseconds,
)
from refkubelet.kuberuntime.images.node_credentials import LoginDirs, docker_config_files
from refkubelet.kuberuntime.images.pull_secrets import PullSecrets
from refkubelet.model.token_bucket import TokenBucket
from simtime import Ids, Rng, VirtualLoop, run_virtual

UNKNOWN = grpc.StatusCode.UNKNOWN
ABSENT = cri.ImageStatusResponse()
PULLED = cri.PullImageResponse(image_ref=IMAGE_ID)
HUB = "https://index.docker.io/v1/"  # upstream takes localhost for it


class Bench:
    """An image manager over a scripted runtime, in virtual time."""

    def __init__(self, root: Path, options: ImageOptions, **answers: Any) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.root, self.options = root, options
        self.clock = loop.clock
        self.target = ScriptedTarget(**answers)
        self.events = Events()
        self.restart()

    def restart(self) -> None:
        """As a kubelet that starts again over the same directory."""
        deps = RuntimeDeps(self.clock, Ids(Rng(0)), self.events)
        options = RuntimeOptions(root_dir=self.root, images=self.options)
        self.images = ImageManager(CriClient(self.target), deps, options)

    async def ensure(
        self, *secrets: Secret, image: str = IMAGE, policy: str = "", uid: str = "u"
    ) -> str:
        pod = make_pod(meta={"uid": uid, "name": uid})
        return await self.images.ensure_image(
            ImageRequest(pod, image, policy, cri.PodSandboxConfig(), secrets)
        )

    async def reason(self, *secrets: Secret, **request: Any) -> tuple[str, str]:
        with pytest.raises(ImageError) as raised:
            await self.ensure(*secrets, **request)
        return raised.value.reason, raised.value.message

    def users(self) -> list[str]:
        return [r.auth.username for r in self.target.requests("PullImage")]


Main = Callable[[Bench], Awaitable[None]]
Run = Callable[..., None]


@pytest.fixture
def virtual(tmp_path: Path) -> Run:
    def run(main: Main, options: ImageOptions | None = None, **answers: Any) -> None:
        async def body() -> None:
            await main(Bench(tmp_path, options or ImageOptions(), **answers))

        run_virtual(body)

    return run


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


# -- credentials ----------------------------------------------------------------------------------


def test_credentials_are_tried_until_one_succeeds_BACK_209(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        assert await bench.ensure(login("ann"), login("bob"), login("cid")) == IMAGE_ID
        assert bench.users() == ["ann", "bob"]
        assert bench.target.requests("PullImage")[1].auth == cri.AuthConfig(
            username="bob", password="p"
        )

    virtual(main, ImageStatus=ABSENT, PullImage=only("bob"))


def test_all_errors_are_told_equal_ones_once_BACK_209(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        told = await bench.reason(login("ann"), login("bob"), login("ann", name="again"))
        assert told == ("ErrImagePull", "[no entry for ann, no entry for bob]")
        assert ("Warning", "Failed", f'Failed to pull image "{IMAGE}": {told[1]}', "") in (
            bench.events.seen
        )

    virtual(main, ImageStatus=ABSENT, PullImage=only())


def test_without_credentials_there_is_one_anonymous_try_BACK_209(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        assert await bench.reason(login("ann", "reg.io")) == (
            "ErrImagePull",
            "no entry for nobody",
        )
        (request,) = bench.target.requests("PullImage")
        assert not request.HasField("auth")

    virtual(main, ImageStatus=ABSENT, PullImage=only())


def test_credentials_of_the_node_come_last_BACK_209(virtual: Run, tmp_path: Path) -> None:
    def write(file: str, user: str) -> None:
        content: dict[str, Any] = {HUB: {"username": user}}
        whole = {"auths": content} if file == "config.json" else content
        (tmp_path / file).write_text(json.dumps(whole))

    async def main(bench: Bench) -> None:
        write(".dockercfg", "old")
        assert await bench.ensure(login("ann"), policy="Always") == IMAGE_ID
        write("config.json", "new")
        await bench.ensure(policy="Always")  # the files are read every 5 minutes
        await asyncio.sleep(300)
        await bench.ensure(policy="Always")
        (tmp_path / "config.json").write_text("{")
        await asyncio.sleep(300)
        await bench.ensure(policy="Always")
        assert bench.users() == ["ann", "old", "old", "new", "old"]

    elsewhere = LoginDirs(tmp_path / "none", tmp_path / "nobody")
    options = ImageOptions(docker_config_files=docker_config_files(tmp_path, elsewhere))
    virtual(main, options, ImageStatus=ABSENT, PullImage=only("old", "new"))


def test_an_unreadable_secret_fails_the_step_BACK_209(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        bad = login("ann")
        bad.data = {".dockerconfigjson": base64.b64encode(b'{"auths":{"a":{"auth":"!"}}}').decode()}
        text = "illegal base64 data at input byte 0"
        assert await bench.reason(bad) == (text, text)
        assert bench.target.methods() == ["ImageStatus"]

    virtual(main, ImageStatus=ABSENT)


class Api:
    def __init__(self, **secrets: Secret) -> None:
        self._secrets = secrets

    async def get_secret(self, namespace: str, name: str) -> Secret:
        if name not in self._secrets:
            raise ApiError(404, "NotFound", f'secrets "{name}" not found')
        return self._secrets[name]


@pytest.mark.parametrize("api", [Api(b=login("b")), None])
async def test_missing_secrets_are_one_event_BACK_209(api: Api | None) -> None:
    events = Events()
    names = [{"name": "a"}, {"name": ""}, {"name": "b"}, {"name": "c"}]
    found = await PullSecrets(api, events).of(make_pod(imagePullSecrets=names))
    missing = "a, c" if api else "a, b, c"
    assert [s.metadata.name for s in found if s.metadata] == (["b"] if api else [])
    text = (
        f"Unable to retrieve some image pull secrets ({missing}); attempting to pull the image may "
        "not succeed."
    )
    assert events.seen == [("Warning", "FailedToRetrieveImagePullSecret", text, "")]


def test_a_secret_is_what_it_last_was_while_the_server_is_away_BACK_209() -> None:
    class Answers:
        secret: Secret | Exception | None = login("ann")

        async def get_secret(self, namespace: str, name: str) -> Secret:
            if self.secret is None:
                await asyncio.sleep(3600)
            if not isinstance(self.secret, Secret):
                raise self.secret or TimeoutError
            return self.secret

    async def main() -> None:
        api, events = Answers(), Events()
        secrets = PullSecrets(api, events)
        pod = make_pod(imagePullSecrets=[{"name": "ann"}])
        first = await secrets.of(pod)
        for away in (ApiError(0, "ConnectError", "refused"), ApiError(500, "", ""), None):
            api.secret = away
            assert await secrets.of(pod) == first
        assert asyncio.get_running_loop().time() <= 2
        assert events.seen == []
        api.secret = ApiError(404, "NotFound", "gone")
        assert await secrets.of(pod) == ()
        api.secret = ApiError(500, "", "")
        assert await secrets.of(pod) == ()
        assert len(events.seen) == 2

    run_virtual(main)


async def test_a_pod_without_references_asks_for_nothing() -> None:
    events = Events()
    assert await PullSecrets(None, events).of(make_pod()) == ()
    assert events.seen == []


# -- turns and rates ------------------------------------------------------------------------------


def test_a_rate_refuses_at_once_and_counts_as_a_failure_BACK_208(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure(policy="Always", uid="a")
        await bench.ensure(policy="Always", uid="b")
        assert await bench.reason(policy="Always", uid="c") == ("ErrImagePull", "pull QPS exceeded")
        assert len(bench.target.requests("PullImage")) == 2
        await asyncio.sleep(0.5)
        assert (await bench.reason(policy="Always", uid="c"))[0] == "ImagePullBackOff"
        await bench.ensure(policy="Always", uid="d")

    virtual(main, ImageOptions(pull_qps=2.0, pull_burst=2), ImageStatus=ABSENT, PullImage=PULLED)


def test_a_rate_counts_pulls_not_credentials_BACK_208(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure(login("ann"), login("bob"))
        assert bench.users() == ["ann", "bob"]

    virtual(main, ImageOptions(pull_burst=1), ImageStatus=ABSENT, PullImage=only("bob"))


def test_a_token_is_taken_when_the_turn_comes_BACK_208(virtual: Run) -> None:
    """Three pulls wait for each other longer than the rate asks: none is refused."""

    async def pull(request: Any) -> Any:
        await asyncio.sleep(1)
        return PULLED

    async def main(bench: Bench) -> None:
        await asyncio.gather(*(bench.ensure(policy="Always", uid=u) for u in "abc"))
        assert bench.clock.monotonic_s() == 3

    virtual(main, ImageOptions(pull_qps=1.0, pull_burst=1), ImageStatus=ABSENT, PullImage=pull)


def test_a_rate_of_zero_is_none_BACK_208(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        for number in range(50):
            await bench.ensure(policy="Always", uid=f"u{number}")
        assert bench.clock.monotonic_s() == 0

    virtual(main, ImageOptions(pull_qps=0.0, pull_burst=1), ImageStatus=ABSENT, PullImage=PULLED)


@pytest.mark.parametrize(
    ("options", "most", "in_all_s"),
    [
        (ImageOptions(), 1, 8),
        (ImageOptions(serialize_pulls=False), 4, 2),
        (ImageOptions(serialize_pulls=False, max_parallel_pulls=3), 3, 4),
        (ImageOptions(serialize_pulls=True, max_parallel_pulls=1), 1, 8),
    ],
)
def test_how_many_pull_at_a_time_BACK_208(
    virtual: Run, options: ImageOptions, most: int, in_all_s: int
) -> None:
    under_way: list[int] = []
    now = [0]

    async def pull(request: Any) -> Any:
        now[0] += 1
        under_way.append(now[0])
        await asyncio.sleep(2)
        now[0] -= 1
        return PULLED

    async def main(bench: Bench) -> None:
        await asyncio.gather(*(bench.ensure(policy="Always", uid=u) for u in "abcd"))
        assert max(under_way) == most
        assert bench.clock.monotonic_s() == in_all_s

    virtual(main, options, ImageStatus=ABSENT, PullImage=pull)


def test_the_times_include_the_look_for_the_size_BACK_204(virtual: Run) -> None:
    async def pull(request: Any) -> Any:
        await asyncio.sleep(1.2349)
        return PULLED

    async def look(request: Any) -> Any:
        await asyncio.sleep(0.5)
        return cri.ImageStatusResponse(image=cri.Image(id=IMAGE_ID, size=77))

    async def main(bench: Bench) -> None:
        await asyncio.gather(*(bench.ensure(policy="Always", uid=u) for u in "ab"))
        texts = [message for _, reason, message, _ in bench.events.seen if reason == "Pulled"]
        front = f'Successfully pulled image "{IMAGE}" in 1.734s'
        assert texts == [
            f"{front} (1.734s including waiting). Image size: 77 bytes.",
            f"{front} (3.469s including waiting). Image size: 77 bytes.",
        ]

    virtual(main, ImageStatus=look, PullImage=pull)


@given(
    st.lists(st.floats(0, 5), min_size=1, max_size=40),
    st.integers(1, 5),
    st.sampled_from([0.5, 1.0, 2.0, 5.0]),
)
def test_no_span_has_more_pulls_than_the_rate_allows(
    pauses: list[float], burst: int, per_s: float
) -> None:
    """Between any two allowed pulls: at most the burst, and the rate times the span; and one is
    allowed whenever a token's time has passed since the last refusal or pull."""
    bucket, now_s = TokenBucket(burst, per_s), 0.0
    allowed: list[float] = []
    for pause_s in pauses:
        now_s += pause_s
        ok = bucket.take(now_s)
        if ok:
            allowed.append(now_s)
        assert 0.0 <= bucket.tokens <= burst
        assert ok or pause_s * per_s < 1.0 + 1e-9
    for first in range(len(allowed)):
        for last in range(first, len(allowed)):
            span_s = allowed[last] - allowed[first]
            assert last - first + 1 <= burst + per_s * span_s + 1e-6


@given(st.integers(0, 10**7))
def test_durations_are_cut_not_rounded(micros: int) -> None:
    assert whole_milliseconds(micros / 1e6) == whole_milliseconds(micros // 1000 / 1e3)


# -- who may use what -----------------------------------------------------------------------------


class Registry:
    """A runtime that has the image once it was pulled; `open_to`: users that may."""

    def __init__(self, *open_to: str) -> None:
        self.open_to = open_to
        self.there = False

    def look(self, request: Any) -> Any:
        image = cri.Image(id=IMAGE_ID, size=5, repo_tags=[IMAGE])
        return cri.ImageStatusResponse(image=image if self.there else None)

    def pull(self, request: Any) -> Any:
        answer = only(*self.open_to)(request)
        self.there = self.there or answer is PULLED
        return answer

    def answers(self) -> dict[str, Any]:
        images = cri.ListImagesResponse(images=[cri.Image(id=IMAGE_ID, size=5, repo_tags=[IMAGE])])
        return {"ImageStatus": self.look, "PullImage": self.pull, "ListImages": images}


def test_who_may_use_a_pulled_image_BACK_210(virtual: Run) -> None:
    registry = Registry("ann")

    async def main(bench: Bench) -> None:
        await bench.ensure(login("ann"), uid="owner")
        await bench.ensure(login("ann"), uid="same")
        await bench.ensure(login("ann", name="copy"), uid="equal")
        await bench.ensure(login("ann", uid="uid-ann", password="new"), uid="changed")
        assert len(bench.target.requests("PullImage")) == 1
        assert (await bench.reason(uid="guest"))[0] == "ErrImagePull"
        assert (await bench.reason(login("bob"), uid="bob"))[0] == "ErrImagePull"
        assert (await bench.reason(uid="quiet", policy="Never"))[0] == "ErrImageNeverPull"
        assert bench.users() == ["ann", "", "bob"]

    virtual(main, **registry.answers())


def test_an_anonymous_pull_is_for_every_pod_BACK_210(virtual: Run) -> None:
    registry = Registry("")

    async def main(bench: Bench) -> None:
        await bench.ensure(uid="a")
        await bench.ensure(login("bob"), uid="b")
        assert bench.users() == [""]

    virtual(main, **registry.answers())


def test_records_outlive_the_kubelet_BACK_211(virtual: Run, tmp_path: Path) -> None:
    registry = Registry("ann")

    async def main(bench: Bench) -> None:
        await bench.ensure(login("ann"))
        bench.restart()
        await bench.ensure(login("ann"))
        assert (await bench.reason(uid="guest"))[0] == "ErrImagePull"
        assert list((tmp_path / "image_manager" / "pulling").iterdir()) == []

    virtual(main, **registry.answers())


def test_a_pull_cut_off_by_a_crash_must_be_verified_BACK_211(virtual: Run) -> None:
    """The note of the pull is found again, the image is there: nobody may use it unverified."""
    registry = Registry("ann")

    async def main(bench: Bench) -> None:
        bench.images.access.begin(IMAGE)  # and then the kubelet is killed
        registry.there = True
        bench.restart()
        assert (await bench.reason(uid="guest"))[0] == "ErrImagePull"
        assert "ListImages" in bench.target.methods()
        await bench.ensure(login("ann"), uid="owner")
        await bench.ensure(login("ann"), uid="again")
        assert bench.users() == ["", "ann"]

    virtual(main, **registry.answers())


def test_a_kubelet_that_ends_leaves_its_notes_BACK_211(virtual: Run, tmp_path: Path) -> None:
    async def hang(request: Any) -> Any:
        await asyncio.sleep(3600)

    async def main(bench: Bench) -> None:
        task = asyncio.ensure_future(bench.ensure())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        (note,) = (tmp_path / "image_manager" / "pulling").iterdir()
        assert json.loads(note.read_text())["image"] == IMAGE

    virtual(main, ImageStatus=ABSENT, PullImage=hang)


def test_a_preloaded_image_is_for_every_pod_unless_always_verified_BACK_210(virtual: Run) -> None:
    async def allowed(bench: Bench) -> None:
        await bench.ensure()

    async def verified(bench: Bench) -> None:
        assert (await bench.reason())[0] == "ErrImagePull"

    virtual(allowed, PullImage=only())
    options = ImageOptions(verification=VerificationPolicy(ALWAYS_VERIFY))
    virtual(verified, options, PullImage=only())


def test_without_the_gate_every_pod_may_use_what_is_there_BACK_210_BACK_202(
    virtual: Run, tmp_path: Path
) -> None:
    registry = Registry("ann")

    async def main(bench: Bench) -> None:
        await bench.ensure(login("ann"), uid="owner")
        await bench.ensure(uid="guest")
        text = f'Container image "{IMAGE}" already present on machine'
        assert bench.events.seen[-1] == ("Normal", "Pulled", text, "")
        assert not (tmp_path / "image_manager").exists()

    virtual(main, ImageOptions(verification=None), **registry.answers())


def test_other_ids_from_pull_and_look_count_as_preloaded_BACK_212(virtual: Run) -> None:
    registry = Registry("ann")

    async def main(bench: Bench) -> None:
        await bench.ensure(login("ann"), uid="owner")
        await bench.ensure(uid="guest")
        assert bench.users() == ["ann"]

    def pull(request: Any) -> Any:
        answer = registry.pull(request)
        return cri.PullImageResponse(image_ref="repo@sha256:9") if answer is PULLED else answer

    virtual(main, **{**registry.answers(), "PullImage": pull})


def test_pruned_records_make_an_image_preloaded(virtual: Run) -> None:
    registry = Registry("ann")

    async def main(bench: Bench) -> None:
        await bench.ensure(login("ann"))
        bench.images.access.prune([], before_ns=bench.clock.wall_ns())  # updated since: stays
        await asyncio.sleep(2)
        bench.images.access.prune([IMAGE_ID], before_ns=bench.clock.wall_ns())
        assert (await bench.reason(uid="guest"))[0] == "ErrImagePull"
        bench.images.access.prune([], before_ns=bench.clock.wall_ns())
        await bench.ensure(uid="other")

    virtual(main, **registry.answers())


def test_notes_that_cannot_be_written_stop_the_pull_BACK_211(virtual: Run, tmp_path: Path) -> None:
    async def main(bench: Bench) -> None:
        (tmp_path / "image_manager").write_text("a file where the directory should be")
        reason, message = await bench.reason()
        assert reason.startswith("failed to record image pull intent: ")
        assert message.startswith(
            f'Failed to record image pull intent for container image "{IMAGE}": '
        )
        assert bench.users() == []

    virtual(main, ImageStatus=ABSENT, PullImage=PULLED)


def test_a_broken_record_forces_a_pull(virtual: Run, tmp_path: Path) -> None:
    registry = Registry("")

    async def main(bench: Bench) -> None:
        await bench.ensure(uid="a")
        (record,) = (tmp_path / "image_manager" / "pulled").iterdir()
        record.write_text("{}")
        bench.restart()
        await bench.ensure(uid="b")
        assert bench.users() == ["", ""]
        bench.restart()
        await bench.ensure(uid="c")  # the pull wrote it anew
        assert bench.users() == ["", ""]

    virtual(main, **registry.answers())


def test_an_answer_without_reference_is_a_failed_pull_BACK_203(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        assert await bench.reason() == (
            "ErrImagePull",
            f'imageRef of image "{IMAGE}" is not set',
        )

    virtual(main, ImageStatus=ABSENT, PullImage=cri.PullImageResponse())


def test_an_image_without_size_BACK_203(virtual: Run) -> None:
    async def main(bench: Bench) -> None:
        text = f'Failed to inspect image "": Id or size of image "{IMAGE}" is not set'
        assert await bench.reason() == ("ImageInspectError", text)

    virtual(main, ImageStatus=cri.ImageStatusResponse(image=cri.Image(id="x")))

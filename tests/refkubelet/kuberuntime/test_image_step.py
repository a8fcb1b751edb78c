"""The image step of a sync over a scripted runtime (BACK-201..213)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from pods import IMAGE, make_pod
from runtime_doubles import Failure, Slow, status
from sync_bench import Bench

from refkubelet.model.image_names import InvalidImageNameError, with_default_tag

pytestmark = pytest.mark.virtual_time

UNKNOWN = grpc.StatusCode.UNKNOWN
EMPTY = status(sandboxes=())
ABSENT = cri.ImageStatusResponse()


async def test_never_and_absent_BACK_202(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT)
    pod = make_pod({"name": "main", "imagePullPolicy": "Never"})
    result = await bench.sync(pod, EMPTY)
    text = f'Container image "{IMAGE}" is not present with pull policy of Never'
    assert [(e.reason, e.message) for e in result.errors] == [("ErrImageNeverPull", text)]
    events = [(kind, reason, message) for kind, reason, message, _ in bench.events.seen]
    assert ("Warning", "ErrImageNeverPull", text) in events
    assert ("Warning", "Failed", "Error: ErrImageNeverPull") in events
    assert "PullImage" not in bench.target.methods()


async def test_always_pulls_without_looking_first_BACK_202_BACK_213(tmp_path: Path) -> None:
    bench = Bench(tmp_path, PullImage=cri.PullImageResponse(image_ref="ref"))
    pod = make_pod({"name": "main", "imagePullPolicy": "Always"})
    assert (await bench.sync(pod, EMPTY)).ok
    assert bench.target.methods()[2:6] == [
        "PullImage",
        "ImageStatus",
        "ImageStatus",
        "CreateContainer",
    ]
    assert bench.target.calls[2][2] is None  # no deadline
    assert bench.target.requests("CreateContainer")[0].config.image.image == "ref"
    message = next(m for _, r, m, _ in bench.events.seen if r == "Pulled")
    assert message.startswith(f'Successfully pulled image "{IMAGE}" in ')
    assert message.endswith("Image size: 5 bytes.")


async def test_pull_back_off_counts_from_the_last_failure_BACK_206_BACK_207(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=Failure(UNKNOWN, "not there"))
    pod = make_pod({"name": "main", "imagePullPolicy": "IfNotPresent"})
    pulls = []
    for _ in range(32):
        result = await bench.sync(pod, EMPTY)
        assert result.min_backoff_expiry_s() is None
        pulls.append((bench.clock.monotonic_s(), result.errors[0].reason))
        await asyncio.sleep(5)
    attempts = [t for t, reason in pulls if reason == "ErrImagePull"]
    assert attempts == [0, 10, 30, 70, 150]
    waiting = bench.manager.reason_cache.get("uid-web", "main")
    assert waiting == (
        "ImagePullBackOff",
        f'Back-off pulling image "{IMAGE}": ErrImagePull: not there',
    )
    assert (
        "Normal",
        "BackOff",
        f'Back-off pulling image "{IMAGE}"',
        "spec.containers{main}",
    ) in (bench.events.seen)


@pytest.mark.parametrize(
    ("code", "details", "reason", "message"),
    [
        (UNKNOWN, "boom", "ErrImagePull", "boom"),
        (
            grpc.StatusCode.UNAVAILABLE,
            "RegistryUnavailable: x",
            "ErrImagePull",
            "rpc error: code = Unavailable desc = RegistryUnavailable: x",
        ),
        (
            UNKNOWN,
            "RegistryUnavailable: x",
            "RegistryUnavailable",
            f"image pull failed for {IMAGE} because the registry is unavailable: x",
        ),
        (
            UNKNOWN,
            "SignatureValidationFailed: y",
            "SignatureValidationFailed",
            f"image pull failed for {IMAGE} because the signature validation failed: y",
        ),
    ],
)
async def test_pull_errors_BACK_205(
    tmp_path: Path, code: grpc.StatusCode, details: str, reason: str, message: str
) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=Failure(code, details))
    result = await bench.sync(make_pod(), EMPTY)
    assert [(e.reason, e.message) for e in result.errors] == [(reason, message)]


async def test_image_without_size_is_an_inspect_error_BACK_203(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=cri.ImageStatusResponse(image=cri.Image(id="x")))
    result = await bench.sync(make_pod(), EMPTY)
    assert [e.reason for e in result.errors] == ["ImageInspectError"]
    assert any(
        r == "InspectFailed" and m.startswith('Failed to inspect image "": ')
        for _, r, m, _ in bench.events.seen
    )


async def test_pulls_are_serial_by_default_BACK_208(tmp_path: Path) -> None:
    pull = Slow(3, cri.PullImageResponse(image_ref="ref"))
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=pull)
    pods = [make_pod(meta={"uid": f"u{n}", "name": f"p{n}"}) for n in range(3)]
    await asyncio.gather(*(bench.sync(pod, EMPTY) for pod in pods))
    assert pull.most == 1
    assert bench.clock.monotonic_s() == 9
    messages = [m for _, r, m, _ in bench.events.seen if r == "Pulled"]
    assert "in 3s (9s including waiting)" in messages[-1]


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("busybox", "busybox:latest"),
        ("UPPER/bad:1", "UPPER/bad:1"),  # an upper-case first part is a domain (s14b)
        ("localhost:5000/x", "localhost:5000/x:latest"),
        ("x@sha256:" + "a" * 64, "x@sha256:" + "a" * 64),
        ("x@sha384:" + "a" * 96, "x@sha384:" + "a" * 96),
        ("x:1@sha512:" + "a" * 128, "x:1@sha512:" + "a" * 128),
        ("a_b.c/d", "a_b.c/d:latest"),
        ("REG.io:5000/x", "REG.io:5000/x:latest"),
        ("reg.io/" + "x" * 255, "reg.io/" + "x" * 255 + ":latest"),
    ],
)
def test_image_names_BACK_201(name: str, full: str) -> None:
    assert with_default_tag(name) == full


TOO_LONG = "x" * 256


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("localhost/BAD:1", "invalid reference format: repository name (BAD) must be lowercase"),
        (
            "Busybox",
            "invalid reference format: repository name (library/Busybox) must be lowercase",
        ),
        ("a_B.c/d", "repository name must be lowercase"),
        ("http://x/y", "invalid reference format"),
        ("", "invalid reference format"),
        ("x:", "invalid reference format"),
        (
            "a" * 64,
            f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings",
        ),
        (f"reg.io/{TOO_LONG}", "repository name must not be more than 255 characters"),
        ("x@md5:" + "a" * 32, "unsupported digest algorithm"),
        ("x@sha256:" + "a" * 32, "invalid checksum digest length"),
        ("x@sha256:" + "A" * 64, "invalid checksum digest format"),
    ],
)
async def test_invalid_image_names_BACK_201(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidImageNameError) as raised:
        with_default_tag(name)
    assert str(raised.value) == why

    bench = Bench(tmp_path)
    result = await bench.sync(make_pod({"name": "main", "image": name}), EMPTY)
    assert [e.reason for e in result.errors] == ["InvalidImageName"]
    assert "ImageStatus" not in bench.target.methods()

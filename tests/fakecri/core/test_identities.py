"""Users and groups of the processes of a container."""

from __future__ import annotations

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import IMAGE, run_exec, started, status

from fakecri import FakeCRI
from fakecri.core.image_store.images import RegistryImage

ME = "me:x:1000:1000::/home/me:/bin/sh"
TEAMS = ("me:x:1000:", "team:x:50000:other,me", "others:x:7:other")


def fake_with_users(**fields: object) -> FakeCRI:
    fake = FakeCRI(images=())
    fake.images.add(IMAGE, RegistryImage(users=(ME,), groups=TEAMS, **fields))  # type: ignore[arg-type]
    return fake


def security(**fields: object) -> cri.LinuxContainerConfig:
    fields = {"run_as_user": cri.Int64Value(value=1000), "supplemental_groups": [1234], **fields}
    context = cri.LinuxContainerSecurityContext(**fields)  # type: ignore[arg-type]
    return cri.LinuxContainerConfig(security_context=context)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("policy", "groups", "shown"),
    [
        (cri.Merge, [1000, 50000, 1234], "1000 1234 50000\n"),
        (cri.Strict, [1000, 1234], "1000 1234\n"),
    ],
)
async def test_the_policy_says_whether_groups_of_the_image_count_CRI_084(
    policy: cri.SupplementalGroupsPolicy, groups: list[int], shown: str
) -> None:
    fake = fake_with_users()
    container = await started(fake, linux=security(supplemental_groups_policy=policy))
    user = (await status(fake, container)).user.linux
    assert (user.uid, user.gid, list(user.supplemental_groups)) == (1000, 1000, groups)
    assert (await run_exec(fake, container, "id", "-G")).stdout.decode() == shown


@pytest.mark.virtual_time
async def test_names_and_homes_are_those_of_the_image_CRI_084() -> None:
    fake = fake_with_users(username="me")
    container = await started(fake)
    answer = await run_exec(fake, container, "sh", "-c", "whoami; id -gn; echo $HOME")
    assert answer.stdout.decode() == "me\nme\n/home/me\n"


@pytest.mark.parametrize("line", ["me", "me:x:one:1::/:/bin/sh", ":x:1:1::/:/bin/sh"])
def test_what_is_no_line_of_a_file_of_users_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="users: wanted lines of /etc/passwd, got"):
        RegistryImage(users=(line,))

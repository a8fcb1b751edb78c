"""Who the processes of a container are: user, group and further groups (CRI-084)."""

from __future__ import annotations

from kubecri.v1 import api_pb2 as pb

from fakecri.core.objects import Container
from fakecri.process.accounts import User
from fakecri.process.identity import Identity


def user_of(container: Container) -> User:
    """What the create request says, else the image, else root. A user that the image knows brings
    its group and its home."""
    security, accounts = container.config.linux.security_context, container.image.accounts
    account = None
    uid = container.image.uid
    if security.HasField("run_as_user"):
        uid = security.run_as_user.value
    elif security.run_as_username:
        account = accounts.named(security.run_as_username)
        uid = 0
    account = account or accounts.user(uid) or User("", uid, 0, "/")
    if security.HasField("run_as_group"):
        return User(account.name, account.uid, security.run_as_group.value, account.home)
    return account


def groups_of(container: Container) -> list[int]:
    """As the runtime tells them: the main group, with the policy Merge those that the image says of
    the user, then those of the request."""
    security, user = container.config.linux.security_context, user_of(container)
    of_image: tuple[int, ...] = ()
    if security.supplemental_groups_policy == pb.Merge:
        of_image = container.image.accounts.groups_of(user.name)
    return list(dict.fromkeys((user.gid, *of_image, *security.supplemental_groups)))


def identity_of(container: Container) -> Identity:
    """As the kernel has it."""
    user = user_of(container)
    return Identity(user.uid, user.gid, tuple(sorted(groups_of(container))))

"""Which volumes the Node shows as in use, and when one is attached (NODE-217)."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.models.storage_v1 import VolumeAttachment

from refkubelet.volumes.csi.attachments import VolumeUse, attachment_problem

NAME = "kubernetes.io/csi/d^h"


def test_a_wanted_volume_is_in_use_until_nothing_is_left_NODE_217() -> None:
    use = VolumeUse()
    use.want(NAME, "a", attachable=True)
    use.want(NAME, "b", attachable=True)
    use.keep([NAME])
    assert use.in_use(()) == [NAME]
    use.forget_pod("a")
    assert use.is_wanted(NAME)
    use.forget_pod("b")
    assert not use.is_wanted(NAME)
    assert use.in_use(()) == [NAME]
    use.keep([])
    assert use.in_use(()) == []


def test_what_is_not_attachable_is_not_in_use_NODE_217() -> None:
    use = VolumeUse()
    use.want(NAME, "a", attachable=False)
    use.keep([NAME])
    assert use.in_use(()) == []


def test_volumes_of_an_earlier_kubelet_are_in_use_if_attached_NODE_217() -> None:
    use = VolumeUse()
    use.keep([NAME, "other"])
    assert use.in_use(()) == []
    assert use.in_use([NAME, "third"]) == [NAME]


def attachment(**status: Any) -> VolumeAttachment:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if status.pop("deleted", False) else {}
    return VolumeAttachment.from_dict(
        {
            "metadata": {"name": "va", **deleted},
            "spec": {"attacher": "d", "nodeName": "n1", "source": {}},
            "status": {"attached": False, **status},
        }
    )


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ({"attached": True}, None),
        ({}, "volume h is not attached for volume attachment va"),
        ({"attachError": {"message": "no such disk"}}, "no such disk"),
        ({"attached": True, "attachError": {"message": "earlier"}}, None),
        ({"attached": True, "deleted": True}, "volume attachment is being deleted"),
    ],
)
def test_when_an_attachment_can_be_used_NODE_217(
    status: dict[str, Any], wanted: str | None
) -> None:
    assert attachment_problem(attachment(**status), "h", "va") == wanted

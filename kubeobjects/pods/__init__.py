"""Pods: the defaults that the API fills in, and what is wrong with one. Pure.

Both work on a pod as JSON whose types are right, and in which every amount is one: whoever decodes
a pod says what is wrong with these. A field that is null counts as absent.

Read `validation` first: it calls all checks in the order in which an API server makes them.
`containers` and `volumes` have rooms of their own; `fields` is the rest of a pod, with
`annotations`, `scheduling`, `dns`, `systems`, `pod_security` and `pod_resources`. `common` is what
they share. `defaults` is what the API fills in, `preparation` what an API server changes beside.

What must never happen here: a message, a field or an order that is not the API server's. Clients
match messages, and a kubelet logs the very same ones for a static pod.
Upstream: pkg/apis/core/validation/validation.go; pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:  # an API server without pods needs none of it
    from kubeobjects.pods.annotations import special_annotation_causes as special_annotation_causes
    from kubeobjects.pods.containers import image_space_causes as image_space_causes
    from kubeobjects.pods.defaults import default_pod as default_pod
    from kubeobjects.pods.preparation import merge_own as merge_own
    from kubeobjects.pods.qos import qos_class as qos_class
    from kubeobjects.pods.scheduling import toleration_causes as toleration_causes
    from kubeobjects.pods.validation import pod_causes as pod_causes
    from kubeobjects.pods.validation import spec_causes as spec_causes
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "annotations": "special_annotation_causes",
            "containers": "image_space_causes",
            "defaults": "default_pod",
            "preparation": "merge_own",
            "qos": "qos_class",
            "scheduling": "toleration_causes",
            "validation": "pod_causes spec_causes",
        },
    )

"""Keys of labels and annotations on sandboxes and containers: the kubelet's durable memory.

A restarted kubelet finds its pods again by these (LIFE-133, LIFE-136); the runtime hands them
back as they were given.
"""

from typing import Final

POD_NAME: Final = "io.kubernetes.pod.name"
POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"
POD_UID: Final = "io.kubernetes.pod.uid"
CONTAINER_NAME: Final = "io.kubernetes.container.name"

CONTAINER_HASH: Final = "io.kubernetes.container.hash"
RESTART_COUNT: Final = "io.kubernetes.container.restartCount"
TERMINATION_MESSAGE_PATH: Final = "io.kubernetes.container.terminationMessagePath"
TERMINATION_MESSAGE_POLICY: Final = "io.kubernetes.container.terminationMessagePolicy"
PRE_STOP_HANDLER: Final = "io.kubernetes.container.preStopHandler"
CONTAINER_PORTS: Final = "io.kubernetes.container.ports"
POD_DELETION_GRACE: Final = "io.kubernetes.pod.deletionGracePeriod"
POD_TERMINATION_GRACE: Final = "io.kubernetes.pod.terminationGracePeriod"

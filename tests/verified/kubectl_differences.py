"""Commands whose output differs between the fake API server and a real one, and why. Each row must
be needed."""

from __future__ import annotations

from typing import Final

DIFFERENCES: Final[dict[str, str]] = {
    "kubectl exec web -- nothing-such": "a kube-apiserver translates the WebSocket of exec for "
    "kubelets that do not declare ExtendWebSocketsToKubelet, and says the kubelet's error again",
}

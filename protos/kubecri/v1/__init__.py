"""runtime.v1, which the kubelet speaks."""

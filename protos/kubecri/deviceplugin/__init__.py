"""Device plugins, v1beta1: Registration of the kubelet, DevicePlugin of a plugin (CG-084)."""

"""The device manager: devices of plugins, given to containers at admission (CG-084)."""

"""Plug-ins that are found by their sockets in plugins_registry, and registered (CG-086, CG-087).

Read `manager` first; `plan` decides, `registration` talks to one plug-in. Device plugins that come
to the kubelet by themselves are another way, with a directory of their own
(`container_manager.devices`).
"""

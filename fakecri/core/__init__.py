"""Sandboxes, containers and images as state machines, without I/O or timers.

Read `runtime` first, the core; `objects` has the state tables, `sandboxes` and `containers` what
happens to each. `image_store` has the images, `lookups` how objects are found.

What must never happen here: a wait, a socket or a file; a clock but the given one.
"""

"""What the manager, `config` and `images` share: the node's options (`runtime_options`, read this
first), the parts of the kubelet that the runtime manager works with (`runtime_deps`), and the
reasons and messages that users see (`reasons`).
"""

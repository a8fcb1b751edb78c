"""The three kinds of PATCH that kubelets and kubectl send: `patch` picks the kind by content type
and applies JSON patches and merge patches; `strategic` merges strategically, with the list keys of
the types in `kubeobjects.schema`.
"""

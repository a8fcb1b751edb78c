"""Objects as protobuf (`application/vnd.kubernetes.protobuf`), which kubelets and other Go clients
speak unless they are told otherwise.

`envelope` is the way in: the bytes of a whole object, list, Status or watch event, and back. What
is inside them is written and read by `codec` with the numbers of the fields that
`kubeobjects.schema` has, single values by `values`, the bytes by `wire`. Nothing of it needs
Google's library, and the table of types is read when an object is first sent or received.
"""

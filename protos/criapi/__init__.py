"""The CRI as Python messages and gRPC services, generated from protos/cri (tox -e protos)."""

"""The kubelet's side of the CRI: calls with deadlines, and their answers as frozen records.

Protobuf messages do not travel further than this folder.
"""

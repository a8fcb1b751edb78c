"""The kubelet's side of the CRI: calls with deadlines, and their answers as frozen records.

Read `client` first. Protobuf messages of answers do not travel further than this folder.
"""

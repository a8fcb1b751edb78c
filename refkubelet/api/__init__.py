"""The API server as the kubelet sees it: the requests it makes, over HTTP, and local copies of what
it follows (list, then watch).
"""

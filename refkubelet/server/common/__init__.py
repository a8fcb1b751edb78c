"""Requests and answers, the routes, and what the servers ask of the kubelet around them."""

"""What happened in a case, in order of time: `entries` is what a trace is made of, `calls` makes it
of recorded CRI calls, `requests` of requests to the API server, `visits` of clients
that reached the ports of containers, `waits` finds what was waited for.

Traces are in the result files of a run (`results_schema`), and the timelines, and what
`kubelet-conformance diff` compares, are made of them.
"""

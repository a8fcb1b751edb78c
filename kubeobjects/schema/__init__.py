"""The types of the Kubernetes API: which fields each has, and how they are written and merged.

Read `messages`: it explains the table of a minor, `kubernetes-1.36.txt`, which
`tools/api_schema.py` makes of Kubernetes' sources. A second minor is a second table.
"""

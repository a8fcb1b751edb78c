"""What pods need of the API server: ConfigMaps, Secrets, tokens of service accounts, trust bundles.

Read `manager` first: who refers to which object, and what a reader gets. `watched` and `fetched`
are the ways to keep objects up to date; `tokens` and `trust_bundles` are for projected volumes.
"""

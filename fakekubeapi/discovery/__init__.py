"""The documents that describe the server itself: `documents` (versions, groups, resources),
`openapi` (OpenAPI v3, for kubectl), `openapi_v2`, `schemas` (the types of the stored kinds).
"""

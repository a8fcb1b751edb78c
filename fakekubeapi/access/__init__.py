"""Identities of clients and their permissions: tokens, users, the access policy, certificates.

A test fills two tables: `FakeApi.users` (bearer tokens and the users they belong to) and
`FakeApi.access` (rows that allow or deny). `tokens` signs and reads the tokens of service accounts,
`certificates` signs certificate requests; `verbs.reviews` answers the reviews that clients send
about all of this.
"""

from fakekubeapi.access.policy import AccessPolicy, AccessRow, Attributes, Decision
from fakekubeapi.access.users import ADMIN, ANONYMOUS, User, Users

__all__ = [
    "ADMIN",
    "ANONYMOUS",
    "AccessPolicy",
    "AccessRow",
    "Attributes",
    "Decision",
    "User",
    "Users",
]

"""Who clients are, and what they may do: tokens, users, the access policy, certificates.

A test writes two tables: `FakeApi.users` (bearer tokens and whose they are) and `FakeApi.access`
(rows that allow or deny). `tokens` signs and reads the tokens of service accounts, `certificates`
signs certificate requests; `verbs.reviews` answers what clients ask about all of it.
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

"""What the server does for a request: `dispatch` picks the verb, `operations` has all verbs but
delete, which `deletion` has. Read `dispatch` first.
"""

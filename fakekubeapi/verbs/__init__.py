"""What the server does for a request: `dispatch` picks the verb, `operations` has all verbs but
delete, which `deletion` has; `posted` looks at what was sent, `ownership` at who owns which field.
Read `dispatch` first.
"""

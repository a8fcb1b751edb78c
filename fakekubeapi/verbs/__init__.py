"""What the server does for a request: `dispatch` picks the verb; `creation`, `changing` and
`deletion` have the steps of an object that is made, changed and deleted; `writing` has what PUT,
PATCH and apply make of one; `posted` looks at what was sent, `ownership` at who owns which field.
Read `dispatch` first.
"""

"""What is stored and how it is looked for: `store` (objects, revisions, the history of changes) and
`selectors` (field and label selectors). Read `store` first.
"""

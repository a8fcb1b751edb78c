"""What is stored and how it is looked for: `store` (objects, revisions, the history of changes),
`selectors` (field and label selectors), `watch` (changes as a stream). Read `store` first.
"""

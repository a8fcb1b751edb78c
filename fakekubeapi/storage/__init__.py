"""What is stored and how it is looked for: `store` (objects, revisions), `index` (keys and the
history of changes, by place), `selectors` (field and label selectors), `feeds` (who hears of a
change), `watch` (changes as a stream). Read `store` first.
"""

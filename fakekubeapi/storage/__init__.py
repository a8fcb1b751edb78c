"""What is stored and how it is looked for: `store` (objects and revisions), `history` (their
changes), `selectors` (field and label selectors), `watch` (changes as a stream). What is where,
and who hears of it: `places`, `key_index`, `feeds`. Read `store` first.
"""

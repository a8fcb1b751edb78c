"""What a request says: `routes` (its path), `parameters` (its query), `accept` (the form of answer
it wants), `shapes` (whether its body has the types of the API object).
"""

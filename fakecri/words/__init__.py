"""The words in which users say what happens: what containers do, and what is done to a fake.

Each word is one struct (`word.Word`): its name, its fields with their types, defaults and checks,
and its documentation. Everything else is made of it: the constructor (`fakecri.exits(1)`), the
shape in scripts and in control requests with its errors, the JSON schema, OpenAPI, the options of
`fakecri ctl`, and the page of words. `behaviors` has what containers do, `actions` what happens
without a call; what is done to calls is beside the rules (`fakecri.rules.verbs`), since each of
these words says itself what it does there.
"""

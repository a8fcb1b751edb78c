"""What Kubernetes' API objects are, for all that read, check and write them: the kubelet, the API
server, the suite.

`quantity`: amounts; `names`: the rules of names and labels; `causes`: what is wrong with a field,
as a refusal lists it; `golang`: how Go writes and reads values. Objects are JSON values: dicts,
lists, texts, numbers.

What must never happen here: an import of another package of the project, or a fact that one of them
has, too.
"""

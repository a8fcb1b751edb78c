"""Images of containers: names, pulls, credentials, records, volumes, collection. Read `manager`
first.

What must never happen here: a password in clear in a log, an event or a record.
"""

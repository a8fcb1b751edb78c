"""Images of containers: names, pulls, credentials, records, volumes, collection."""

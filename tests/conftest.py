"""For all tests: how long a generated example takes says nothing on a busy machine."""

from hypothesis import settings

settings.register_profile("project", deadline=None)
settings.load_profile("project")

"""What a run tells the CI of a project: a summary in Markdown, annotations, properties in JUnit, a
baseline of known failures, parts of equal length, progress. Read `plugin` first: it calls the rest.
"""

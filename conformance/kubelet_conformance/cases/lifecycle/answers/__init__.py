"""Events, the API server's pods, and answers of the runtime that are errors or odd."""

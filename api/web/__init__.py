"""HTTP of every subject alike: authentication, problem documents, limits, the OpenAPI document."""

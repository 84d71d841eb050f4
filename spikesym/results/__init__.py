"""The registry of results: every statement with its formulas, its source and its checks."""

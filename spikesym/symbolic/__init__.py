"""Exact layer: SymPy only."""

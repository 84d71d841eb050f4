"""Numeric layer: certified (Arb, mpmath) and fast (NumPy, SciPy) evaluation of the symbolic objects."""

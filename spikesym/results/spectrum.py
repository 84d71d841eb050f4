"""Statements about the spectrum of k1: importing this module registers them."""

from __future__ import annotations

from . import spectrum_blocks, spectrum_shifts, spectrum_sphere

__all__ = ["spectrum_blocks", "spectrum_shifts", "spectrum_sphere"]

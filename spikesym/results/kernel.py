"""Statements about the kernels and dual activations: importing this module registers them."""

from __future__ import annotations

from . import kernel_dual, kernel_price, kernel_relu

__all__ = ["kernel_dual", "kernel_price", "kernel_relu"]

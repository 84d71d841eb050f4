"""A and B after one gradient step: from the definition to the exact formulas of the ReLU link."""

import sys

import sympy
from _show import show

from spikesym.symbolic.angle import angle_derivation
from spikesym.symbolic.covariance_exact import conditional_derivation, homogeneous_derivation
from spikesym.symbolic.covariance_links import link_derivation
from spikesym.symbolic.covariance_series import series_derivation
from spikesym.symbolic.covariance_steps import general_derivation
from spikesym.symbolic.symbols import X

if __name__ == "__main__":
    sys.exit(
        show(
            [
                general_derivation(),
                conditional_derivation(),
                angle_derivation(),
                homogeneous_derivation(),
                link_derivation(sympy.Max(0, X)),
                series_derivation(),
            ]
        )
    )

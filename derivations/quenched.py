"""The covariance of the features given the batch: exact, and its leading order."""

import sys

from _show import show

from spikesym.symbolic.quenched_steps import batch_derivation

if __name__ == "__main__":
    sys.exit(show([batch_derivation()]))

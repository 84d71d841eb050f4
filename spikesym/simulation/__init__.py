"""Monte Carlo: the trained network, its readout, and the estimators with their standard errors."""

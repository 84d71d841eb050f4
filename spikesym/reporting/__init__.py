"""LaTeX, HTML and figures. These modules format; they do not compute.

The package is called ``reporting`` because ``spikesym.report`` is the Python call of ``spikesym report``.
"""

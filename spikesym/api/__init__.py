"""One module for each command: the Python call and the documented object it returns."""

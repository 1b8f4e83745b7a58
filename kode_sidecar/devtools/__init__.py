"""For authors of plugins and for bug reports."""

"""`kode-sidecar demo`: a recorded turn through the real process, and the recorded model alone."""

from kode_sidecar.demo.play import DemoOptions, play
from kode_sidecar.demo.serve import serve_model

__all__ = ["DemoOptions", "play", "serve_model"]

"""`kode-sidecar demo`: a recorded turn through the real process."""

from kode_sidecar.demo.play import DemoOptions, play

__all__ = ["DemoOptions", "play"]

"""`kode-sidecar demo`: a turn or governed runs through the real process with a recorded model."""

from kode_sidecar.devtools.demo.play import play
from kode_sidecar.devtools.demo.play_job import play_job
from kode_sidecar.devtools.demo.serve import serve_model, serve_script
from kode_sidecar.devtools.demo.stage import DemoOptions

__all__ = ["DemoOptions", "play", "play_job", "serve_model", "serve_script"]

"""Plays transcripts: against a process, to compare; or as a server, for a plugin's tests."""

from kode_sidecar.replay.comparison import Difference
from kode_sidecar.replay.model_requests import ModelRequests, different_requests, without_prompts
from kode_sidecar.replay.player import Replayed, play
from kode_sidecar.replay.program import ReplayOptions, replay

__all__ = [
    "Difference",
    "ModelRequests",
    "ReplayOptions",
    "Replayed",
    "different_requests",
    "play",
    "replay",
    "without_prompts",
]

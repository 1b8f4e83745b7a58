"""kode-sidecar: the agent back end that an editor spawns over stdio."""

__version__ = "0.1.0"

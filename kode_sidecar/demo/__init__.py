"""`kode-sidecar demo`: a recorded turn through the real process."""

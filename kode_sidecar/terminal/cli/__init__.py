"""The command line of `kode-sidecar`."""

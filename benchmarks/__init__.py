"""Figures of the sidecar next to those of plain programs; see README.md."""

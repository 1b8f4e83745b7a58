"""Clients of model hosts. See README.md."""

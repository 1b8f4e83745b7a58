"""Governed jobs, one or many."""

"""Decides what the model sees."""

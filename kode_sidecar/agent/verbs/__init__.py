"""Verbs: named prompts that every client offers as `/name`."""

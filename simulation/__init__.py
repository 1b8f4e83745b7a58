"""Worlds that one integer makes: the real rooms, with everything around them simulated."""

"""The user's scripts at events of a session: before and after tools, before prompts, at ends."""

"""The user's files as the editor sees them: open text first, disk second."""

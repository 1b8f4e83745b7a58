"""How edits that models write are applied: right, refused, or wrong."""

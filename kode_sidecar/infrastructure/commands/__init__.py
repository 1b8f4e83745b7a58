"""Programs run for an agent: found by name outside its reach, bounded, killed whole."""

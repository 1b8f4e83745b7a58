"""What editors speak to: bytes to messages, life cycle, wiring."""

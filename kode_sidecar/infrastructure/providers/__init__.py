"""Model adapters; the only users of HTTP."""

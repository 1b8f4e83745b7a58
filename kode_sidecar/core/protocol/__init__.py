"""The wire contract, declared once. `methods` is the table; the rest are its types."""

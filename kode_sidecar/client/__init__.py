"""A small LSP + kode client: demo, tests, bench and the terminal chat use it."""

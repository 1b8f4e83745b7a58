"""Making the programs that need no Python; `python -m freeze`, called by `dev.py exe`."""

"""A job without an editor: described in a file, run in a sandbox, judged by what it delivers."""

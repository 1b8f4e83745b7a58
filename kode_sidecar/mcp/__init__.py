"""MCP: servers of the user, asked for tools. See README.md; enter here only."""

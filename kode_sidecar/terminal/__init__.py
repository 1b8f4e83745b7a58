"""The command line, the chat, and the client that both use."""

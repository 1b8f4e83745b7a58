"""All HTTP that this process speaks as a client. `client` loads httpx, `timeouts` does not."""

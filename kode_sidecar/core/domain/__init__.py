"""Pure values and rules: no IO, no clock, no asyncio."""

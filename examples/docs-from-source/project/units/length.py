"""Lengths."""

INCH = 0.0254


def to_metres(inches: float) -> float:
    return inches * INCH


def to_inches(metres: float) -> float:
    """Inches of a length in metres."""
    return metres / INCH

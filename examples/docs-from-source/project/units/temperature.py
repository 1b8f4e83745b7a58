"""Temperatures."""

ABSOLUTE_ZERO = -273.15


def to_kelvin(celsius: float) -> float:
    if celsius < ABSOLUTE_ZERO:
        raise ValueError("colder than absolute zero")
    return celsius - ABSOLUTE_ZERO

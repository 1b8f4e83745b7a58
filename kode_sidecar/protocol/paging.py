"""How much goes on one page of a listing."""

from kode_sidecar.errors import KodeError


def page_limit(limit: int, most: int) -> int:
    """How much goes on a page. Raises KodeError `InvalidParams`."""
    if limit < 1:
        text = f"Expected a number from 1 to {most} at `$.limit`"
        raise KodeError("InvalidParams", text, details={"path": "$.limit"})
    return min(limit, most)

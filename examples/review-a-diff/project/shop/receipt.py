"""Receipts."""

from shop.prices import MEMBER_DISCOUNT, price_of


def total(items: dict[str, int], member: bool = False) -> int:
    """What a customer pays for so many pieces of each, in cents."""
    amount = sum(price_of(name, member) * count for name, count in items.items())
    if member:
        amount -= amount * MEMBER_DISCOUNT // 100
    return amount

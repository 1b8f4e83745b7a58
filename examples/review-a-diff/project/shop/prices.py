"""Prices of the shop, in cents."""

PRICES = {"tea": 450, "cup": 1200, "pot": 3900}
MEMBER_DISCOUNT = 10  # percent


def price_of(name: str, member: bool = False) -> int:
    """The price of one piece."""
    price = PRICES[name]
    if member:
        price -= price * MEMBER_DISCOUNT // 100
    return price

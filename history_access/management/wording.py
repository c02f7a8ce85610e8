"""How commands word what they did."""


def counted(number: int, what: str) -> str:
    """A number of things: "1 seal", "2 seals"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

"""What ``ptr.library`` is made of."""

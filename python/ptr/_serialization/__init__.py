"""What :mod:`ptr.serialization` is made of."""

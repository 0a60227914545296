"""The functions of :mod:`ptr.nn.functional` by family; each file is imported when one of its functions is touched."""

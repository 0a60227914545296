"""Contexts that find the operation whose gradient went wrong."""

from __future__ import annotations

import warnings

from ptr import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Context in which errors of a backward pass name the operation of the forward pass that they belong to.

    Nodes made inside keep the traceback of their forward; one whose backward fails, or (with ``check_nan``) gives a
    value that is not a number, prints it. This is slow: for debugging only.

    Args:
        check_nan: raise an error when a backward gives not-a-number. Default: ``True``.

    Example::

        >>> with torch.autograd.detect_anomaly():
        ...     loss = model(x).sum()
        ...     loss.backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        _C.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *args: object) -> None:
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Switch anomaly detection on or off: at once or, as a context, for a block; see :class:`detect_anomaly`.

    Args:
        mode: whether detection is on.
        check_nan: raise an error when a backward gives not-a-number. Default: ``True``.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)

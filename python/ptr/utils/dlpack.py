"""DLPack: tensors over memory that other libraries made, and the other way round."""

from __future__ import annotations

import enum

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of device types."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Any) -> Any:
    """Return a capsule, in the form of DLPack before 1.0, that shares the tensor's memory.

    Args:
        tensor: a strided tensor that requires no gradient. The capsule can be consumed once.
    """
    return _C._to_dlpack(tensor)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """Return a tensor over the memory of another library's tensor.

    Args:
        ext_tensor: an object with ``__dlpack__`` and ``__dlpack_device__``, or a capsule.
        device: the device that the result must be on. Default: where ``ext_tensor`` is.
        copy: ``True`` to get a copy, ``False`` to get an error where a copy would be needed. Default: copy where
            needed.

    Example::

        >>> torch.from_dlpack(numpy.arange(3.0))
        tensor([0., 1., 2.], dtype=torch.float64)
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise ValueError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
        return _C._from_dlpack(ext_tensor)
    kwargs: dict[str, Any] = {"max_version": (1, 1)}
    if copy is not None:
        kwargs["copy"] = copy
    source_type, source_id = ext_tensor.__dlpack_device__()
    if device is not None:
        device = device if isinstance(device, _C.device) else _C.device(device)
        wanted = _C._dlpack_device(_C._VariableFunctions.empty(0, device=device))
        if copy is None or wanted != (int(source_type), source_id):
            kwargs["dl_device"] = wanted
    if source_type == DLDeviceType.kDLCUDA:
        stream = _current_cuda_stream(source_id)
        # 0 is ambiguous in the protocol; 1 names the legacy default stream.
        kwargs["stream"] = stream or 1
    try:
        capsule = ext_tensor.__dlpack__(**kwargs)
    except TypeError:
        # A producer of before 1.0, which knows no versions, devices or copies.
        kwargs.pop("max_version")
        if kwargs.pop("dl_device", None) is not None or kwargs.pop("copy", None):
            raise
        capsule = ext_tensor.__dlpack__(**kwargs)
    return _C._from_dlpack(capsule)


def _current_cuda_stream(index: int) -> int:
    from ptr import cuda  # type: ignore[attr-defined]

    return cuda.current_stream(f"cuda:{index}").cuda_stream


def _dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Do the work of ``Tensor.__dlpack__``."""
    if type(self) is not _C.Tensor and _C._has_torch_function_unary(self):
        kwargs = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return _C._handle_torch_function(_C.Tensor.__dlpack__, (self,), (self,), kwargs)
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if stream is not None and type(stream) is not int:
        raise TypeError(f"stream must be ``int`` or ``none``, got {type(stream).__name__}")
    if self.device.type == "cpu" and stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"__dlpack__(): argument 'copy' must be bool, not {type(copy).__name__}")
    tensor = self.detach()
    device = _C._dlpack_device(tensor)
    if dl_device is not None and tuple(map(int, dl_device)) != device:
        if copy is False:
            raise ValueError(
                f"cannot move (tensor.device={tensor.device}) tensor to device {dl_device} without copying."
            )
        tensor = tensor.to(_C._dlpack_device_name(*map(int, dl_device)))
        copy = None
        is_copied = True
    else:
        is_copied = bool(copy)
        if copy:
            tensor = tensor.clone()
    if max_version is None or max_version[0] < 1:
        return _C._to_dlpack(tensor)
    return _C._to_dlpack_versioned(tensor, is_copied)

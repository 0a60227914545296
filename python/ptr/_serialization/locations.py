"""Where storages lie: how files say it, and how storages are put back there."""

from __future__ import annotations

from typing import Any

import ptr as torch
from ptr.storage import TypedStorage, UntypedStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_package_registry: list[tuple[int, Callable[..., Any], Callable[..., Any]]] = []


def register_package(priority: int, tagger: Callable[[Any], Any], deserializer: Callable[[Any, str], Any]) -> None:
    """Register how storages of a device are tagged in files and restored.

    Args:
        priority: lower comes first.
        tagger: ``tagger(storage) -> str or None``.
        deserializer: ``deserializer(storage, location) -> storage or None``.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])


def _cpu_tag(storage: Any) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None


def _cpu_deserialize(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _meta_tag(storage: Any) -> str | None:
    return "meta" if storage.device.type == "meta" else None


def _meta_deserialize(storage: Any, location: str) -> Any:
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


def _accelerator_tag(storage: Any) -> str | None:
    device = storage.device
    return f"{device.type}:{device.index or 0}" if device.type in ("cuda", "privateuseone") else None


def validate_cuda_device(location: Any) -> int:
    """Return the index of the CUDA device that a location names; an error if it is not there.

    Args:
        location: ``"cuda"`` or ``"cuda:<index>"``.
    """
    return _validate_device(location, "cuda")


def validate_hpu_device(location: Any) -> int:
    """Return the index of the HPU device that a location names; an error if it is not there.

    Args:
        location: ``"hpu"`` or ``"hpu:<index>"``.
    """
    return _validate_device(location, "hpu")


def _validate_device(location: Any, backend: str) -> int:
    name = str(location)
    index = int(name.split(":")[1]) if ":" in name else 0
    module = getattr(torch, backend, None)
    if module is None or not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {backend.upper()} device but torch.{backend}.is_available() is "
            f"False. If "
            "you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to "
            "map your storages to the CPU."
        )
    count = module.device_count()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on {backend.upper()} device {index} but "
            f"torch.{backend}.device_count() is "
            f"{count}. Please use torch.load with map_location to map your storages to an existing device."
        )
    return index


def _cuda_deserialize(storage: Any, location: str) -> Any:
    if not location.startswith("cuda"):
        return None
    index = validate_cuda_device(location)
    with torch.no_grad():
        return torch.tensor([], dtype=torch.uint8).set_(storage).to(f"cuda:{index}").untyped_storage()


register_package(10, _cpu_tag, _cpu_deserialize)
register_package(20, _accelerator_tag, _cuda_deserialize)
register_package(22, _meta_tag, _meta_deserialize)


def location_tag(storage: Any) -> str:
    """Return the name that files give the device of a storage.

    Args:
        storage: the storage.
    """
    for _, tagger, _ in _package_registry:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {torch.typename(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """Return a storage on the device that a file names.

    Args:
        storage: the bytes, on the host.
        location: the name of the device.
    """
    for _, _, deserializer in _package_registry:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(f"don't know how to restore data location of {torch.typename(storage)} (tagged with {location})")


def _restore_function(map_location: Any) -> Callable[[Any, str], Any]:
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        name = map_location if isinstance(map_location, str) else map_location.decode("ascii")
        return lambda storage, location: default_restore_location(storage, name)
    if isinstance(map_location, torch.device):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def restore(storage: Any, location: str) -> Any:
        result = map_location(storage, location)
        if result is None:
            return default_restore_location(storage, location)
        if not isinstance(result, (TypedStorage, UntypedStorage)):
            raise TypeError(f"load(): map_location must return a storage or None, got {type(result).__name__}")
        return result

    return restore

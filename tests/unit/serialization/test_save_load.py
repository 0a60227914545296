"""Saving and loading: both formats, sharing, safety, interrupted saves."""

import collections
import copy
import io
import os
import pickle
import pickletools
import zipfile

import ptr as torch
import pytest
from ptr import serialization


def round_trip(obj, **kwargs):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return torch.load(buffer, **kwargs)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("weights_only", [False, True])
def test_values_survive(tmp_path, legacy, weights_only):
    state = collections.OrderedDict(weight=torch.tensor([[1.0, 2.0], [3.0, 4.0]]), step=torch.tensor(3))
    state._metadata = {"": {"version": 1}}
    obj = {
        "state": state,
        "numbers": [1, -(2**70), 2.5, 1j, True, None, "text", b"bytes", (1, (2,))],
        "dtype": torch.float16,
        "device": torch.device("cpu"),
        "size": torch.Size([2, 3]),
        "set": {1, 2},
        "view": torch.arange(6).reshape(2, 3).t(),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "empty": torch.empty(0, 3),
        "grad": torch.ones(1, requires_grad=True),
    }
    path = tmp_path / "file.pt"
    torch.save(obj, path, _use_new_zipfile_serialization=not legacy)
    loaded = torch.load(path, weights_only=weights_only)
    assert loaded["state"]["weight"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert type(loaded["state"]) is collections.OrderedDict and loaded["state"]._metadata == {"": {"version": 1}}
    assert loaded["numbers"] == obj["numbers"]
    assert loaded["dtype"] is torch.float16 and loaded["device"] == torch.device("cpu")
    assert loaded["size"] == torch.Size([2, 3]) and type(loaded["size"]) is torch.Size
    assert loaded["set"] == {1, 2}
    assert loaded["view"].tolist() == obj["view"].tolist() and loaded["view"].stride() == (1, 3)
    assert loaded["half"].dtype is torch.bfloat16 and loaded["half"].tolist() == [1.0, 1.0]
    assert loaded["empty"].shape == (0, 3)
    assert loaded["grad"].requires_grad


def test_shared_storages_stay_shared():
    x = torch.arange(4.0)
    loaded = round_trip([x, x[1:], x])
    assert loaded[0] is loaded[2]
    loaded[0][1] = 9.0
    assert loaded[1][0].item() == 9.0


def test_parameters_and_modules():
    module = torch.nn.Linear(2, 3)
    loaded = round_trip(module.state_dict())
    assert loaded["weight"].tolist() == module.weight.tolist()
    parameter = round_trip(torch.nn.Parameter(torch.ones(2)))
    assert type(parameter) is torch.nn.Parameter and parameter.requires_grad
    parameter.note = "kept"
    assert round_trip(parameter).note == "kept"
    whole = round_trip(module, weights_only=False)
    assert type(whole) is torch.nn.Linear and whole.bias.tolist() == module.bias.tolist()
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        round_trip(module)


def test_the_file_is_spelled_as_pytorchs(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"x": torch.ones(2)}, path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        data = archive.read("model/data.pkl")
        assert archive.read("model/byteorder") == b"little"
        assert archive.read("model/data/0") == b"\x00\x00\x80\x3f" * 2
    assert names[0] == "model/data.pkl"
    assert b"torch._utils" in data and b"_rebuild_tensor_v2" in data and b"ptr" not in data.replace(b"storage", b"")


def test_dtypes_without_storage_class_and_meta():
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        loaded = round_trip(torch.ones(3, dtype=torch.int64).to(dtype))
        assert loaded.dtype is dtype and loaded.tolist() == [1, 1, 1]
    loaded = round_trip(torch.empty(2, 3, device="meta"))
    assert loaded.is_meta and loaded.shape == (2, 3)


def test_map_location():
    x = torch.ones(2)
    assert round_trip(x, map_location="meta").is_meta
    assert round_trip(x, map_location=torch.device("cpu")).tolist() == [1.0, 1.0]
    assert round_trip(x, map_location={"cpu": "meta"}).is_meta
    seen = []

    def place(storage, location):
        seen.append(location)
        return storage

    assert round_trip(x, map_location=place).tolist() == [1.0, 1.0]
    assert seen == ["cpu"]
    assert round_trip(x, map_location=lambda storage, location: None).tolist() == [1.0, 1.0]


def test_mmap(tmp_path):
    path = tmp_path / "file.pt"
    torch.save(torch.arange(1000.0), path)
    loaded = torch.load(path, mmap=True)
    loaded[0] = 5.0
    assert loaded.sum().item() == 499505.0
    assert torch.load(path)[0].item() == 0.0
    with pytest.raises(ValueError, match="mmap"):
        torch.load(io.BytesIO(path.read_bytes()), mmap=True)


class Evil:
    def __reduce__(self):
        return (os.system, ("touch /nonexistent/evil",))


class Mine:
    def __init__(self, value):
        self.value = value


def test_weights_only_runs_nothing():
    buffer = io.BytesIO()
    torch.save(Evil(), buffer)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(buffer)


def test_safe_globals():
    name = f"{Mine.__module__}.Mine"
    buffer = io.BytesIO()
    torch.save(Mine(3), buffer)
    data = buffer.getvalue()
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == [name]
    with pytest.raises(pickle.UnpicklingError, match="Mine"):
        torch.load(io.BytesIO(data))
    with serialization.safe_globals([Mine]):
        assert serialization.get_safe_globals() == [Mine]
        assert torch.load(io.BytesIO(data)).value == 3
    assert serialization.get_safe_globals() == []
    assert torch.load(io.BytesIO(data), weights_only=False).value == 3


def test_damaged_files(tmp_path):
    path = tmp_path / "file.pt"
    torch.save(torch.arange(1000.0), path)
    data = path.read_bytes()
    for broken in (data[: len(data) // 2], data[:40] + b"\0" * 60 + data[100:]):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(broken))
    with pytest.raises(EOFError, match="Ran out of input"):
        torch.load(io.BytesIO(b""))
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(b"no checkpoint at all"))
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "missing.pt")
    with pytest.raises(IsADirectoryError):
        torch.load(tmp_path)
    with pytest.raises(AttributeError, match="seekable"):
        torch.load(3)
    with pytest.raises(AttributeError, match="write"):
        torch.save(1, 3)


def test_an_interrupted_save_leaves_the_old_file(tmp_path):
    class Unpicklable:
        def __reduce__(self):
            raise ZeroDivisionError

    path = tmp_path / "file.pt"
    torch.save(torch.ones(2), path)
    with pytest.raises(ZeroDivisionError):
        torch.save([torch.zeros(2), Unpicklable()], path)
    assert torch.load(path).tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["file.pt"]


def test_errors_of_file_objects_come_through():
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        torch.save(torch.ones(2), Full())


def test_pickle_and_copy():
    x = torch.arange(3.0, requires_grad=True)
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == x.tolist() and y.requires_grad
    z = copy.deepcopy([x, x])
    assert z[0] is z[1] and z[0] is not x
    parameter = copy.deepcopy(torch.nn.Parameter(torch.ones(1)))
    assert type(parameter) is torch.nn.Parameter
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)
    storage = pickle.loads(pickle.dumps(torch.ones(2).untyped_storage()))
    assert bytes(storage) == b"\x00\x00\x80\x3f" * 2


def test_conjugates_and_negatives():
    x = torch.tensor([1 + 2j, 3 - 4j])
    assert round_trip(x.conj()).tolist() == [1 - 2j, 3 + 4j]


def test_one_storage_of_two_dtypes_is_refused():
    x = torch.zeros(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([x, x.view(torch.int32)], io.BytesIO())


def test_options():
    assert serialization.get_default_load_endianness() is None
    serialization.set_default_load_endianness(serialization.LoadEndianness.LITTLE)
    assert serialization.get_default_load_endianness() is serialization.LoadEndianness.LITTLE
    serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError):
        serialization.set_default_load_endianness("little")
    with serialization.skip_data():
        buffer = io.BytesIO()
    torch.save(torch.ones(3), buffer)
    buffer.seek(0)
    with serialization.skip_data():
        assert torch.load(buffer).shape == (3,)


class Plain(torch.Tensor):
    pass


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "complex32", "float32"])
@pytest.mark.parametrize("legacy", [False, True])
def test_attributes_and_subclasses_keep_the_dtype(dtype, legacy):
    values = [1, 2, 300]
    plain = torch.tensor(values, dtype=getattr(torch, dtype))
    tagged = torch.tensor(values, dtype=getattr(torch, dtype))
    tagged.foo = 1
    sub = torch.tensor(values, dtype=getattr(torch, dtype)).as_subclass(Plain)
    buffer = io.BytesIO()
    torch.save([plain, tagged, sub], buffer, _use_new_zipfile_serialization=not legacy)
    buffer.seek(0)
    for loaded, original in zip(torch.load(buffer, weights_only=False), [plain, tagged, sub], strict=True):
        assert loaded.dtype is original.dtype and type(loaded) is type(original)
        assert loaded.tolist() == original.tolist()
    assert copy.copy(tagged).dtype is tagged.dtype and copy.copy(tagged).foo == 1


def test_meta_tensors_with_attributes_survive():
    x = torch.empty(2, 3, dtype=torch.float16, device="meta")
    x.foo = [1]
    loaded = round_trip(x, weights_only=False)
    assert loaded.is_meta and loaded.shape == (2, 3) and loaded.dtype is torch.float16 and loaded.foo == [1]


def test_an_interrupted_legacy_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.pt"
    torch.save(torch.ones(2), path, _use_new_zipfile_serialization=False)

    def fail(storage):
        raise KeyboardInterrupt

    monkeypatch.setattr("ptr._serialization.writing._on_host", fail)
    with pytest.raises(KeyboardInterrupt):
        torch.save(torch.zeros(2), path, _use_new_zipfile_serialization=False)
    assert torch.load(path).tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["file.pt"]


def test_legacy_streams_follow_each_other():
    buffer = io.BytesIO()
    buffer.write(b"head")
    for value in (1.0, 2.0):
        torch.save(torch.full((3,), value), buffer, _use_new_zipfile_serialization=False)
    buffer.write(b"tail")
    buffer.seek(4)
    assert torch.load(buffer).tolist() == [1.0] * 3
    assert torch.load(buffer, weights_only=False).tolist() == [2.0] * 3
    assert buffer.read() == b"tail"


def test_functions_of_all_namespaces_are_pickled_by_name():
    for function in (torch.nn.functional.linear, torch.add, torch.Tensor.add):
        assert pickle.loads(pickle.dumps(function)) is function


def test_the_object_of_a_storage_is_one():
    x = torch.ones(4)
    storage = x.untyped_storage()
    assert x.untyped_storage() is storage and x[1:].untyped_storage() is storage
    assert torch.ones(4).untyped_storage() is not storage


def test_files_name_what_pytorch_has_by_its_name():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    buffer = io.BytesIO()
    torch.save([module, optimizer, torch.nn.functional.linear], buffer)
    with zipfile.ZipFile(buffer) as archive:
        data = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    modules = {arg.split(" ")[0] for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"}
    assert {"torch.nn.modules.container", "torch.nn.modules.linear", "torch.optim.sgd", "torch._C._nn"} <= modules
    assert not [name for name in modules if name.startswith("ptr")]
    # What PyTorch's modules hold beside their own attributes.
    names = {arg for _, arg, _ in pickletools.genops(data) if isinstance(arg, str)}
    assert names >= {"_forward_hooks", "_backward_hooks", "_is_full_backward_hook"}
    assert "_forward_hooks" not in copy.deepcopy(module).__dict__, "copies have no tables that nobody uses"
    buffer.seek(0)
    loaded, _, function = torch.load(buffer, weights_only=False)
    assert type(loaded[0]) is torch.nn.Linear and function is torch.nn.functional.linear
    assert "_hooked" not in vars(loaded[0])
    x = torch.ones(1, 2)
    assert torch.equal(loaded(x), module(x))


@pytest.mark.parametrize("name", ["ptr.nn.modules.linear.Linear", "torch.nn.modules.linear.Linear"])
def test_either_name_of_a_class_is_allowed(name):
    module = torch.nn.Linear(1, 1)
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.linear.Linear"):
        round_trip(module)
    for entry in (torch.nn.Linear, (torch.nn.Linear, name)):
        with serialization.safe_globals([entry]):
            assert type(round_trip(module)) is torch.nn.Linear


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_bytes_and_bytearrays(legacy, protocol):
    value = [bytearray(range(256)) * 4, bytes(100), bytearray(), {"nested": bytearray(b"x" * 1000)}]
    buffer = io.BytesIO()
    torch.save(value, buffer, pickle_protocol=protocol, _use_new_zipfile_serialization=not legacy)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    assert loaded == value and [type(v) for v in loaded] == [type(v) for v in value]


def _edited(**changes):
    """A checkpoint of which records (by the ends of their names, with `_` for `/` and `.`) are changed or left out."""
    file = io.BytesIO()
    torch.save({"a": torch.ones(3)}, file)
    edited = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(edited, "w") as new:
        for name in old.namelist():
            key = next((k for k in changes if name.replace("/", "_").replace(".", "_").endswith("_" + k)), None)
            data = changes[key](old.read(name)) if key else old.read(name)
            if data is not None:
                new.writestr(name, data)
    return edited.getvalue()


_MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, 2)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize(
    ("error", "data"),
    [
        (RuntimeError, _edited(version=lambda _: None)),
        (RuntimeError, _edited(version=lambda _: b"999")),
        (RuntimeError, _edited(version=lambda _: b"0")),
        (RuntimeError, _edited(version=lambda _: b"abc")),
        (RuntimeError, _edited(data_0=lambda data: data[:4])),
        (RuntimeError, _edited(data_0=lambda data: data + b"0000")),
        (RuntimeError, _edited(data_0=lambda _: None)),
        (ValueError, _edited(byteorder=lambda _: b"middle")),
        (EOFError, _edited(data_pkl=lambda _: b"")),
        (EOFError, b""),
        (RuntimeError, pickle.dumps({"a": 1}, 2)),
    ],
)
def test_damaged_files_raise_pytorchs_classes(error, data, weights_only):
    with pytest.raises(error):
        torch.load(io.BytesIO(data), weights_only=weights_only)


@pytest.mark.parametrize(
    "data", [b"\x80", _MAGIC[:5], _MAGIC, _MAGIC + pickle.dumps(1001, 2), _edited(data_pkl=lambda _: b"\x80\x02")]
)
def test_truncated_pickles_are_ends_of_file(data):
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(data))


@pytest.mark.parametrize("data", [b"garbage", b"some text", b"\xff\xff"])
def test_other_files_are_no_checkpoints(data):
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(data))


def test_unknown_persistent_ids():
    with pytest.raises(AssertionError, match="Unknown persistent id"):
        torch.load(io.BytesIO(_edited(data_pkl=lambda _: b"\x80\x02K\x01Q.")), weights_only=False)


def test_arguments_of_load():
    file = io.BytesIO(_edited())
    with pytest.raises(TypeError, match="map_location must return a storage or None, got int"):
        torch.load(file, map_location=lambda storage, location: 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        torch.load(file, nothing=3)
    with pytest.raises(ValueError, match="null byte"):
        torch.load("a\0b")


def test_only_archives_are_mapped(tmp_path):
    path = tmp_path / "legacy.pt"
    torch.save(torch.ones(2), path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        torch.load(path, mmap=True)
    path.write_text("some text")
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        torch.load(path, mmap=True)


def test_where_nothing_can_be_saved(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "such.pt", "", "/dev/full"):
        with pytest.raises(RuntimeError, match=r"save\(\)"):
            torch.save(1, path)
    with pytest.raises(IsADirectoryError):
        torch.save(1, tmp_path, _use_new_zipfile_serialization=False)
    with pytest.raises(FileNotFoundError):
        torch.save(1, tmp_path / "no" / "such.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="null byte"):
        torch.save(1, "a\0b")

    class NoFlush:
        def write(self, data):
            return len(data)

    with pytest.raises(AttributeError, match="flush"):
        torch.save(1, NoFlush())

"""The safetensors format: round trips, files by others, bad files."""

from __future__ import annotations

import json
import os
import struct

import ptr as torch
import pytest
from ptr.safetensors import _DTYPES, load, load_file, safe_open, save, save_file


def make_file(header, data=b"", *, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.safetensors"


@pytest.mark.parametrize("name", list(_DTYPES))
def test_every_dtype(name, path):
    dtype = _DTYPES[name]
    data = torch.arange(6 * dtype.itemsize, dtype=torch.uint8)
    if name == "BOOL":
        data = data % 2
    x = data.view(dtype).reshape(2, 3)
    save_file({"x": x}, path)
    for loaded in (load_file(path)["x"], load(path.read_bytes())["x"], load(save({"x": x}))["x"]):
        assert loaded.dtype is dtype and loaded.shape == (2, 3)
        assert torch.equal(loaded.reshape(-1).view(torch.uint8), data)
    with safe_open(path) as file:
        assert file.get_slice("x").get_dtype() == name


def test_the_file_is_what_the_format_says():
    data = save({"b": torch.tensor([1, 2], dtype=torch.uint8), "a": torch.tensor([[1.0]])}, {"format": "pt"})
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0
    assert header == {
        "__metadata__": {"format": "pt"},
        "a": entry("F32", [1, 1], 0, 4),
        "b": entry("U8", [2], 4, 6),
    }
    assert data[8 + length :] == struct.pack("<f", 1.0) + b"\1\2"
    assert save({}) == struct.pack("<Q", 8) + b"{}      "


def test_files_by_others():
    # A header of odd length: the numbers are at no multiple of their size.
    header = {"x": entry("F64", [2], 0, 16), "s": entry("I16", [], 16, 18), "e": entry("F32", [0, 3], 18, 18)}
    text = json.dumps(header).encode()
    text += b" " * ((5 - len(text)) % 8)
    loaded = load(make_file(text, struct.pack("<ddh", 1.5, -2.5, 7)))
    assert loaded["x"].tolist() == [1.5, -2.5] and loaded["s"].item() == 7 and loaded["e"].shape == (0, 3)


def test_misaligned_files_are_loaded(path):
    text = json.dumps({"x": entry("F64", [2], 0, 16)}).encode()
    text += b" " * ((5 - len(text)) % 8)
    path.write_bytes(make_file(text, struct.pack("<dd", 1.5, -2.5)))
    x = load_file(path)["x"]
    assert x.tolist() == [1.5, -2.5] and x.data_ptr() % 8 == 0


def test_views_and_special_tensors(path):
    base = torch.arange(10.0)
    conjugate = torch.tensor([1 + 2j]).conj()
    parameter = torch.nn.Parameter(torch.ones(2))
    save_file({"low": base[:4], "high": base[4:], "c": conjugate, "p": parameter, "e": torch.empty(0)}, path)
    loaded = load_file(path)
    assert loaded["low"].tolist() == [0, 1, 2, 3] and loaded["high"].tolist() == [4, 5, 6, 7, 8, 9]
    assert loaded["c"].tolist() == [1 - 2j] and not loaded["p"].requires_grad and loaded["e"].shape == (0,)


def test_writing_to_a_loaded_tensor_does_not_reach_the_file(path):
    save_file({"x": torch.zeros(3000)}, path)
    before = path.read_bytes()
    x = load_file(path)["x"]
    x.fill_(1)
    assert path.read_bytes() == before and load_file(path)["x"].sum() == 0
    os.remove(path)
    assert x.sum() == 3000


def test_saving_over_the_file_that_is_loaded(path):
    save_file({"x": torch.ones(5000)}, path)
    x = load_file(path)["x"]
    save_file({"x": torch.zeros(10)}, path)
    assert x.sum() == 5000 and load_file(path)["x"].shape == (10,)


def test_a_failed_save_leaves_the_old_file(path, monkeypatch):
    from ptr.safetensors import _Plan

    save_file({"x": torch.ones(2)}, path)

    def fail(self):
        yield torch.ones(2).untyped_storage(), 0, 9

    monkeypatch.setattr(_Plan, "chunks", fail)
    with pytest.raises(RuntimeError, match="expected a range within 8 bytes, got 9 from 0 on"):
        save_file({"x": torch.zeros(2)}, path)
    assert load_file(path)["x"].tolist() == [1, 1] and os.listdir(path.parent) == [path.name]


def test_opened_files(path):
    save_file({"b": torch.arange(12).reshape(3, 4), "a": torch.ones(2).half()}, path, {"k": "v"})
    with safe_open(path, framework="pt", device="cpu") as file:
        assert file.keys() == ["a", "b"] and file.offset_keys() == ["b", "a"] and file.metadata() == {"k": "v"}
        assert file.get_tensor("a").tolist() == [1, 1]
        part = file.get_slice("b")
        assert part.get_shape() == [3, 4] and part.get_dtype() == "I64"
        assert part[1:, ::2].tolist() == [[4, 6], [8, 10]]
        with pytest.raises(KeyError, match="File does not contain tensor c"):
            file.get_tensor("c")
    with pytest.raises(ValueError, match="the file is closed"):
        file.get_tensor("a")
    save_file({}, path)
    assert safe_open(path).metadata() is None and load_file(path) == {}
    with pytest.raises(ValueError, match="framework 'np' is not available"):
        safe_open(path, framework="np")


@pytest.mark.parametrize(
    ("tensors", "error", "match"),
    [
        ([1], ValueError, "Expected a dict"),
        ({"x": 1}, ValueError, "Key `x` is invalid, expected torch.Tensor but received <class 'int'>"),
        ({1: torch.ones(1)}, TypeError, "tensors are named by str, got 1"),
        ({"x": torch.ones(2, 3).t()}, ValueError, "non contiguous tensor: `x`"),
        ({"x": torch.ones(1, dtype=torch.complex128)}, ValueError, "`x` has dtype .*complex128"),
        ({"x": torch.ones(1, device="meta")}, ValueError, "`x` is a meta tensor"),
        ({"\ud800": torch.ones(1)}, UnicodeError, "surrogates"),
    ],
)
def test_what_cannot_be_saved(tensors, error, match, path):
    with pytest.raises(error, match=match):
        save_file(tensors, path)
    assert not path.exists()


def test_shared_memory_cannot_be_saved(path):
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="Some tensors share memory.*'a'.*'b'"):
        save_file({"a": x, "b": x[1:]}, path)
    with pytest.raises(TypeError, match="metadata maps str to str"):
        save_file({}, path, {"a": 1})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1234567",
        struct.pack("<Q", 2**63),
        struct.pack("<Q", 100_000_001) + b"{}",
        make_file(b"{}", length=3),
        make_file(b"\xff\xff"),
        make_file(b"[1]"),
        make_file(b"[" * 100_000),
        make_file(b'{"x": 3}'),
        make_file({}, b"1"),
        make_file({"x": entry("F32", [1], 0, 4)}, b"123"),
        make_file({"x": entry("F32", [1], 0, 4)}, b"12345"),
        make_file({"x": entry("F32", [2], 0, 4)}, b"1234"),
        make_file({"x": entry("F32", [-1], 0, 4)}, b"1234"),
        make_file({"x": entry("F32", [1], 4, 0)}, b"1234"),
        make_file({"x": entry("F32", [1], 1, 5)}, b"12345"),
        make_file({"x": entry("F32", [1], 0, 4), "y": entry("F32", [1], 2, 6)}, b"123456"),
        make_file({"x": entry("F99", [1], 0, 4)}, b"1234"),
        make_file({"x": entry("F32", [2**62, 2**62], 0, 4)}, b"1234"),
        make_file({"x": entry("U8", [2**64 - 1], 0, 2**64 - 1)}, b"1234"),
        make_file({"x": entry("F32", [1.5], 0, 4)}, b"1234"),
        make_file({"__metadata__": {"a": 1}}),
        make_file({"x": entry("F6_E2M3", [4], 0, 3)}, b"123"),
        make_file({"x": entry("F4", [2, 1], 0, 1)}, b"1"),
        make_file({"x": entry("F32", [0, 2**63], 0, 0)}),
        make_file({"x": entry("F32", [0, 2**62, 2**62], 0, 0)}),
    ],
)
def test_bad_files(data, path):
    path.write_bytes(data)
    for call in (lambda: load(data), lambda: load_file(path)):
        with pytest.raises((ValueError, RuntimeError, EOFError, OverflowError)):
            call()


def test_every_byte_of_a_header_may_be_wrong():
    good = bytearray(save({"x": torch.arange(3), "y": torch.ones(2, 2)}, {"a": "b"}))
    for position in range(len(good) - 40):
        for value in (0, 0x22, 0x39, 0x7D, 0xFF):
            bad = bytearray(good)
            bad[position] = value
            try:
                for tensor in load(bytes(bad)).values():
                    tensor.sum() if tensor.dtype is not torch.bool else None
            except (ValueError, RuntimeError, NotImplementedError, OverflowError):
                pass


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "none")
    with pytest.raises(OSError):
        load_file(tmp_path)
    with pytest.raises(OSError):
        save_file({}, tmp_path / "none" / "x")

"""The tensor object: identity, lifetime, attributes, subclasses."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import ptr
import pytest


def test_a_tensor_returned_again_is_the_same_object():
    x = ptr.ones(2)
    assert x.add_(1) is x
    assert x.contiguous() is x
    assert x.to(ptr.float32) is x
    y = x
    y += 1
    assert y is x


def test_attributes_live_as_long_as_the_core_keeps_the_tensor():
    x = ptr.ones(2, requires_grad=True)
    x.grad = ptr.ones(2)
    x.grad.note = "kept"
    gc.collect()
    assert x.grad.note == "kept"
    assert x.grad is x.grad


def test_weak_references_end_with_the_object():
    x = ptr.ones(2)
    ended = []
    ref = weakref.ref(x, lambda _: ended.append(True))
    assert ref() is x
    del x
    assert ref() is None
    assert ended == [True]


def test_cycles_through_attributes_are_collected():
    x = ptr.ones(2)
    assert not gc.is_tracked(x)
    x.myself = x
    assert gc.is_tracked(x)
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_objects_from_the_free_list_are_clean():
    x = ptr.ones(2)
    x.mark = 1
    del x
    for _ in range(200):
        assert not hasattr(ptr.ones(2), "mark")


def test_subclasses_keep_their_class_and_are_finalized():
    class Marked(ptr.Tensor):
        pass

    x = ptr.ones(2).as_subclass(Marked)
    assert type(x) is Marked
    assert isinstance(x, ptr.Tensor)
    assert type(x + 1) is Marked
    x.extra = [x]
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_metadata():
    x = ptr.zeros(2, 3, dtype=ptr.float64)
    assert x.shape == (2, 3) and type(x.shape) is ptr.Size
    assert x.size() == x.shape and x.size(-1) == 3 and x.size(dim=0) == 2
    assert x.stride() == (3, 1) and x.stride(0) == 3
    assert x.dim() == x.ndim == x.ndimension() == 2
    assert x.numel() == x.nelement() == 6
    assert x.dtype is ptr.float64 and x.device == ptr.device("cpu") and x.layout is ptr.strided
    assert x.itemsize == x.element_size() == 8 and x.nbytes == 48
    assert x.is_cpu and not x.is_cuda and not x.is_meta and not x.is_sparse
    assert x.is_contiguous() and not x.transpose(0, 1).is_contiguous()
    assert x.is_floating_point() and not x.is_complex() and x.is_signed()
    assert x.is_leaf and not x.requires_grad and x.grad is None and x.grad_fn is None
    assert x.get_device() == -1
    assert hash(x) == id(x)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 4\)"):
        x.size(4)
    with pytest.raises(AttributeError):
        x.shape = 1


def test_gradient_attributes_are_checked():
    x = ptr.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got grad of type int"):
        x.grad = 1
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 1
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        ptr.ones(2, dtype=ptr.int64).requires_grad_()
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        ptr.tensor([1], requires_grad=True)
    x.grad = ptr.zeros(2)
    del x.grad
    assert x.grad is None


def test_versions_count_modifications():
    x = ptr.ones(2)
    assert x._version == 0
    x.add_(1)
    x[0] = 3
    assert x._version == 2 and x.detach()._version == 2 and x.clone()._version == 0


def test_python_numbers():
    assert int(ptr.tensor(2.7)) == 2 and float(ptr.tensor(3)) == 3.0 and bool(ptr.tensor(0.0)) is False
    assert complex(ptr.tensor(1 + 2j)) == 1 + 2j
    assert [1, 2, 3][ptr.tensor(1)] == 2
    assert ptr.tensor([5]).item() == 5 and type(ptr.tensor(True).item()) is bool
    assert f"{ptr.tensor(1.234):.2f}" == "1.23"
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(ptr.ones(2))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        bool(ptr.ones(0))
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        float(ptr.ones(2))
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        ptr.ones(2).item()
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1][ptr.tensor(0.5)]


def test_protocols():
    x = ptr.tensor([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x and 7 not in x
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(ptr.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(ptr.tensor(1))
    assert (x == None) is False  # noqa: E711
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"


def test_singletons_pickle_by_name_and_print():
    for value in (ptr.float32, ptr.strided, ptr.channels_last):
        assert pickle.loads(pickle.dumps(value)) is value
        assert copy.deepcopy(value) is value
    assert repr(ptr.float32) == "ptr.float32"
    assert ptr.float is ptr.float32 and ptr.long is ptr.int64
    device = ptr.device("cuda:1")
    assert pickle.loads(pickle.dumps(device)) == device and hash(ptr.device("cuda", 1)) == hash(device)
    assert repr(device) == "device(type='cuda', index=1)" and str(device) == "cuda:1"
    size = ptr.Size([2, 3])
    assert repr(size) == "ptr.Size([2, 3])" and size.numel() == 6
    assert type(size[:1]) is ptr.Size and type(size + (1,)) is ptr.Size
    assert pickle.loads(pickle.dumps(size)) == size
    with pytest.raises(TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 0 is 'str'\)"):
        ptr.Size(["a"])


def test_functions_pickle_by_name():
    assert pickle.loads(pickle.dumps(ptr.add)) is ptr.add
    assert pickle.loads(pickle.dumps(ptr.Tensor.add)) is ptr.Tensor.add
    assert pickle.loads(pickle.dumps(ptr.ops.aten.add)) is ptr.ops.aten.add
    assert pickle.loads(pickle.dumps(ptr.ops.aten.add.Tensor)) == ptr.ops.aten.add.Tensor


def test_deepcopy_and_pickle_of_tensors():
    x = ptr.arange(6).reshape(2, 3)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y is not x and y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()
    a, b = copy.deepcopy((x, x[0]))
    assert a.data_ptr() == b.data_ptr()


def test_legacy_constructor():
    assert ptr.Tensor(2, 3).shape == (2, 3)
    assert ptr.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert ptr.Tensor().shape == (0,)
    with pytest.raises(TypeError, match=r"new\(\): invalid data type 'str'"):
        ptr.Tensor("a")


def test_torch_function_sees_calls():
    seen = []

    class Logged(ptr.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = ptr.ones(2).as_subclass(Logged)
    seen.clear()
    y = ptr.add(ptr.ones(2), x)
    assert type(y) is Logged and seen[0] == "add"
    seen.clear()
    x.sum()
    assert seen[0] == "sum"

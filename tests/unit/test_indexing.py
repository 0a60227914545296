"""Indexing with integers, slices, masks and tensors, and the errors it raises."""

from __future__ import annotations

import ptr
import pytest


@pytest.fixture
def x():
    return ptr.arange(12).reshape(3, 4)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (1, [4, 5, 6, 7]),
        (-1, [8, 9, 10, 11]),
        (slice(1, None), [[4, 5, 6, 7], [8, 9, 10, 11]]),
        ((1, 2), 6),
        ((slice(None), 1), [1, 5, 9]),
        ((slice(None), slice(1, 3)), [[1, 2], [5, 6], [9, 10]]),
        ((Ellipsis, 0), [0, 4, 8]),
        ((slice(None, None, 2), -1), [3, 11]),
        ([0, 2], [[0, 1, 2, 3], [8, 9, 10, 11]]),
        (([0, 2], [1, 3]), [1, 11]),
        ((slice(None), [0, 3]), [[0, 3], [4, 7], [8, 11]]),
        ([True, False, True], [[0, 1, 2, 3], [8, 9, 10, 11]]),
    ],
)
def test_values(x, index, expected):
    assert x[index].tolist() == expected


def test_tensors_and_masks(x):
    assert x[ptr.tensor([2, 0])].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert x[ptr.tensor(1)].tolist() == [4, 5, 6, 7]
    assert x[x > 9].tolist() == [10, 11]
    assert x[ptr.tensor([0, 1]), ptr.tensor([[1], [2]])].tolist() == [[1, 5], [2, 6]]


def test_new_dimensions(x):
    assert x[None].shape == (1, 3, 4) and x[:, None].shape == (3, 1, 4) and x[..., None].shape == (3, 4, 1)
    assert x[True].shape == (1, 3, 4) and x[False].shape == (0, 3, 4)


def test_views_share_memory(x):
    view = x[1:, 1:3]
    view.fill_(0)
    assert x.tolist() == [[0, 1, 2, 3], [4, 0, 0, 7], [8, 0, 0, 11]]
    assert x[...] is not x and x[:].data_ptr() == x.data_ptr()


def test_assignment(x):
    x[0] = 1
    x[1, 1:] = ptr.tensor([7, 8, 9])
    x[x > 8] = 0
    x[[0, 2], [0, 3]] = ptr.tensor([5, 6])
    assert x.tolist() == [[5, 1, 1, 1], [4, 7, 8, 0], [8, 0, 0, 6]]
    x[:] = 2.0
    x[None] = ptr.tensor([[[3]]])
    assert x.tolist() == [[3] * 4] * 3
    x[False] = 9
    assert x.tolist() == [[3] * 4] * 3


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ((0, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (1.5, IndexError, r"only integers, slices \(`:`\), ellipsis .* \(got float\)"),
        ({1: 2}, IndexError, r"only integers, slices \(`:`\), ellipsis .* \(got dict\)"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (slice("a", None), TypeError, "slice indices must be integers or None or have an __index__ method"),
    ],
)
def test_errors(x, index, error, message):
    with pytest.raises(error, match=message):
        x[index]


def test_errors_of_assignment(x):
    with pytest.raises(TypeError, match="can't assign a str to a torch.LongTensor"):
        x[0] = "a"
    with pytest.raises(TypeError, match="does not support deleting"):
        del x[0]
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        ptr.tensor(1)[0]


def test_a_mask_that_does_not_fit_comes_before_the_dtype_of_the_value():
    x = ptr.arange(60).reshape(3, 4, 5)
    with pytest.raises(IndexError, match="shape of the mask"):
        x[ptr.tensor([True, False])] = ptr.tensor(3.7)


def test_several_ellipses_are_an_index_error_where_they_leave_no_dimension():
    x = ptr.zeros(2, 3)
    for index in [(..., ..., 0), (..., ..., ptr.tensor(0)), (..., ..., [0]), (..., ..., None), (..., ..., True)]:
        with pytest.raises(IndexError):
            x[index]
        with pytest.raises(IndexError):
            x[index] = 1
    assert x[..., ..., 0, 0].item() == 0 and x[..., 0, ..., 0].item() == 0
    assert x[..., 0, ...].shape == (2,)


@pytest.mark.parametrize(
    ("make", "value", "expected"),
    [
        (lambda x: x, 2.5, [2, 1, 2, 3]),
        (lambda x: x.float(), 2, [2.0, 1.0, 2.0, 3.0]),
        (lambda x: x.double(), 2, [2.0, 1.0, 2.0, 3.0]),
        (lambda x: x.bool(), 2.5, [True, True, True, True]),
    ],
)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_mask_takes_a_number_of_any_dtype(make, value, expected, shape):
    mask = ptr.tensor([True, False, True, False])
    value = ptr.tensor(value).reshape(shape)
    x = make(ptr.arange(4))
    x[mask] = value
    assert x.tolist() == expected
    assert make(ptr.arange(4)).index_put((mask,), value).tolist() == expected


def test_a_mask_takes_numbers_of_its_own_dtype_only_where_it_cannot_fill():
    x, mask = ptr.arange(4), ptr.tensor([True, False, True, False])
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[mask] = ptr.tensor([2.5, 3.5])
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[ptr.tensor([0])] = ptr.tensor(2.5)
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x.index_put_((mask,), ptr.tensor(2.5), accumulate=True)
    with pytest.raises(RuntimeError, match="without overflow"):
        ptr.ones(4)[mask] = ptr.tensor(2 + 1j)


def test_gradients_reach_a_value_of_another_dtype():
    value = ptr.tensor(3.5, requires_grad=True)
    x = ptr.zeros(3, dtype=ptr.float64)
    x[ptr.tensor([True, False, True])] = value
    (x * ptr.tensor([2.0, 3.0, 5.0], dtype=ptr.float64)).sum().backward()
    assert value.grad.item() == 7.0 and value.grad.dtype is ptr.float32


def test_scatter_adds_or_multiplies():
    index = ptr.tensor([[0, 0, 1], [1, 0, 1]])
    x, src = ptr.tensor([[2, 3, 1], [0, 1, 1]]), ptr.tensor([[1, 2, 3], [1, 3, 2]])
    assert x.scatter(0, index, src, reduce="add").tolist() == [[3, 8, 1], [1, 1, 6]]
    assert x.scatter(0, index, src, reduce="multiply").tolist() == [[2, 18, 1], [0, 1, 6]]
    assert x.scatter(0, index, 3, reduce="add").tolist() == [[5, 9, 1], [3, 1, 7]]
    assert x.half().scatter(0, index, 2.5, reduce="multiply").tolist() == [[5, 18.75, 1], [0, 1, 6.25]]
    assert x.bool().scatter(0, index, src.bool(), reduce="multiply").tolist() == [[True] * 3, [False, True, True]]
    out = ptr.empty(0, dtype=ptr.int64)
    assert ptr.scatter(x, 0, index, src, reduce="add", out=out) is out and out.tolist() == [[3, 8, 1], [1, 1, 6]]
    assert x.clone().scatter_(1, index, src, reduce="add").tolist() == [[5, 6, 1], [3, 4, 1]]
    # One after the other, as the index has them.
    at = ptr.zeros(3, dtype=ptr.int64)
    assert ptr.ones(2).scatter(0, at, ptr.tensor([1e30, -1e30, 1]), reduce="add").tolist() == [1, 1]
    for device in ("cpu", "meta"):
        with pytest.raises(RuntimeError, match="reduce argument must be either add or multiply."):
            x.to(device).scatter(0, index.to(device), 1, reduce="sum")
    with pytest.raises(RuntimeError, match="value cannot be converted to type"):
        x.scatter(0, index, 2 + 3j, reduce="add")
    with pytest.raises(RuntimeError, match="index 2 is out of bounds for dimension 0 with size 2"):
        x.scatter(0, index + 1, 1, reduce="add")
    with pytest.raises(RuntimeError, match="derivative"):
        ptr.ones(2, 3, requires_grad=True).scatter(0, index, 2.0, reduce="multiply").sum().backward()

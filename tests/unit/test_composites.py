"""Operators made of others: values that a wrong formula would miss, and gradients of each."""

import itertools

import numpy as np
import ptr as torch
import pytest
from ptr.autograd.gradcheck import gradcheck, gradgradcheck


def double(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


DIFFERENTIABLE = {
    "repeat": (lambda x: x.repeat(2, 3, 1), (2, 3)),
    "roll": (lambda x: torch.roll(x, (1, -2), (0, 1)), (3, 4)),
    "flip": (lambda x: x.flip(0, 1), (2, 3)),
    "rot90": (lambda x: torch.rot90(x, 3), (2, 3)),
    "diag_embed": (lambda x: torch.diag_embed(x, 1), (2, 3)),
    "trace": (torch.trace, (3, 4)),
    "kron": (lambda x: torch.kron(x, x), (2, 3)),
    "cross": (lambda x: torch.linalg.cross(x, x.flip(0) * 2), (2, 3)),
    "einsum": (lambda x: torch.einsum("iij,jk->ik", x, x[0]), (3, 3, 3)),
    "multi_dot": (lambda x: torch.linalg.multi_dot([x, x.t(), x]), (2, 3)),
    "cov": (torch.cov, (2, 4)),
    "var": (lambda x: x.var(1, correction=2), (2, 5)),
    "std_mean": (lambda x: torch.std_mean(x, 0), (4, 3)),
    "logsumexp": (lambda x: x.logsumexp(1), (2, 3)),
    "vector_norm": (lambda x: torch.linalg.vector_norm(x, 3.5, 1), (2, 3)),
    "renorm": (lambda x: x.renorm(2, 0, 0.5), (2, 3)),
    "quantile": (lambda x: x.quantile(0.3, 1), (2, 5)),
    "cumsum": (lambda x: x.cumsum(1), (2, 4)),
    "cumprod": (lambda x: x.cumprod(0), (4, 2)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), (4, 2)),
    "cummax": (lambda x: x.cummax(1).values, (2, 4)),
    "topk": (lambda x: x.topk(2, 1).values, (2, 5)),
    "median": (lambda x: x.median(1).values, (2, 5)),
    "triu": (lambda x: x.triu(-1), (3, 4)),
    "gradient": (lambda x: torch.gradient(x, edge_order=2)[0], (4, 3)),
    "take_along_dim": (lambda x: x.take_along_dim(torch.tensor([[1], [-1]]), 1), (2, 3)),
    "index_copy": (lambda x: x.index_copy(0, torch.tensor([2, 0]), x[:2] * 3), (3, 2)),
    "masked_scatter": (lambda x: x.masked_scatter(torch.tensor([True, False, True]), x * 2), (2, 3)),
    "expand_copy": (lambda x: torch.expand_copy(x, (2, 3)), (1, 3)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    function, shape = DIFFERENTIABLE[name]
    torch.manual_seed(3)
    x = double(*shape)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_gradient_of_a_running_product_with_zeros():
    x = torch.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x.cumprod(0), (x,))
    assert gradgradcheck(lambda x: x.cumprod(0), (x,))


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_gradient_of_scatter_reduce(reduce, include_self):
    torch.manual_seed(4)
    index = torch.tensor([0, 2, 0, 1])
    x, src = double(4), double(4)
    assert gradcheck(lambda x, src: x.scatter_reduce(0, index, src, reduce, include_self=include_self), (x, src))


def test_gradient_of_as_strided_scatter_is_zero_where_the_source_went():
    x, src = double(3, 3), double(2)
    assert gradcheck(lambda x, src: torch.as_strided_scatter(x, src, (2,), (4,), 1), (x, src))


def test_copies_of_views_do_not_share_memory():
    x = torch.arange(6.0).reshape(2, 3)
    for copy in (torch.t_copy(x), torch.view_copy(x, (3, 2)), torch.unbind_copy(x)[0], torch.expand_copy(x, (2, 3))):
        assert copy.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    assert torch.t_copy(x).stride() == (2, 1)
    assert torch.view_copy(x.t(), (6,)).tolist() == [0, 3, 1, 4, 2, 5]


def test_selection_with_nan():
    x = torch.tensor([1.0, float("nan"), 2.0, float("nan"), 3.0])
    assert x.median(0).indices == 1
    assert x.nanmedian(0).values == 2
    assert x.topk(3).indices.tolist()[2] == 4
    assert x.kthvalue(3).values == 3


def test_unique_and_counts():
    x = torch.tensor([[3, 1], [1, 3], [3, 1]])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [[1, 0], [0, 1], [1, 0]], [3, 3])
    rows, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=0)
    assert (rows.tolist(), inverse.tolist(), counts.tolist()) == ([[1, 3], [3, 1]], [1, 0, 1], [1, 2])
    assert x.flatten().unique_consecutive().tolist() == [3, 1, 3, 1]


@pytest.mark.parametrize(
    ("equation", "shapes", "result"),
    [
        ("ij,jk", [(2, 3), (3, 4)], (2, 4)),
        ("...ij,...jk->...ik", [(5, 2, 3), (1, 3, 4)], (5, 2, 4)),
        ("ii->i", [(3, 3)], (3,)),
        ("a,b,c->cba", [(2,), (3,), (4,)], (4, 3, 2)),
        ("ba", [(2, 3)], (3, 2)),
    ],
)
def test_einsum_shapes(equation, shapes, result):
    assert torch.einsum(equation, *[torch.ones(shape) for shape in shapes]).shape == result


def test_einsum_of_small_integers_keeps_their_dtype():
    left, right = torch.ones(1, 2, 3, dtype=torch.int8), torch.ones(1, 3, dtype=torch.int8)
    assert torch.einsum("ijk,ik->j", left, right).dtype == torch.int8


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij->ii", [(2, 3)], "appears more than once"),
        ("ij->k", [(2, 3)], "does not appear"),
        ("i", [(2, 3)], "does not match the number of dimensions"),
        ("i,i", [(2,), (3,)], "does not broadcast"),
        ("i..j", [(2, 3)], "not part of any ellipsis"),
    ],
)
def test_einsum_errors(equation, shapes, message):
    with pytest.raises(RuntimeError, match=message):
        torch.einsum(equation, *[torch.ones(shape) for shape in shapes])


@pytest.mark.parametrize("offset", [-(2**63), -7, -3, -1, 0, 1, 2, 4, 2**63 - 1])
def test_indices_of_triangles(offset):
    for rows, columns in itertools.product(range(5), repeat=2):
        for ours, theirs in ((torch.tril_indices, np.tril_indices), (torch.triu_indices, np.triu_indices)):
            expected = np.array(theirs(rows, max(-9, min(offset, 9)), columns))
            result = ours(rows, columns, offset)
            assert result.is_contiguous() and result.dtype == torch.int64
            np.testing.assert_array_equal(result.numpy(), expected)


def test_indices_of_a_small_triangle_in_a_huge_matrix():
    assert torch.tril_indices(2**31, 3, -(2**31) + 1).tolist() == [[2**31 - 1], [0]]
    assert torch.triu_indices(2**40, 2**40, 2**40 - 2).tolist() == [[0, 0, 1], [2**40 - 2, 2**40 - 1, 2**40 - 1]]
    with pytest.raises(RuntimeError, match="more elements than fit in memory"):
        torch.tril_indices(2**62, 2**62)

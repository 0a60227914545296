"""Operators that cut a tensor into views, or order its dimensions anew."""

import itertools

import ptr
import pytest
from ptr.autograd.gradcheck import gradcheck, gradgradcheck


def lengths(pieces):
    return [len(piece) for piece in pieces]


def test_tensor_split_into_sections():
    x = ptr.arange(10).view(5, 2)
    assert lengths(x.tensor_split(3)) == [2, 2, 1]
    assert lengths(x.tensor_split(7)) == [1, 1, 1, 1, 1, 0, 0]
    assert [piece.shape for piece in ptr.tensor_split(x, 3, dim=1)] == [(5, 1), (5, 1), (5, 0)]
    assert ptr.equal(ptr.cat(x.tensor_split(sections=4)), x)


def test_tensor_split_at_indices_slices():
    x = ptr.arange(5)
    for indices in ([1, 3], (1, -1, 9), [3, 1], [], [-9]):
        bounds = [0, *indices, None]
        expected = [x[a:b].tolist() for a, b in itertools.pairwise(bounds)]
        assert [piece.tolist() for piece in x.tensor_split(indices)] == expected
        assert [piece.tolist() for piece in x.tensor_split(ptr.tensor(indices, dtype=ptr.int64))] == expected
    assert lengths(x.tensor_split(ptr.tensor(2))) == [3, 2]


def test_tensor_split_gives_views():
    x = ptr.zeros(5)
    x.tensor_split(2)[1].fill_(1)
    x.tensor_split([1])[0].fill_(2)
    assert x.tolist() == [2, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), RuntimeError, "number of sections must be larger than 0, got 0"),
        ((2, 5), IndexError, "Dimension out of range"),
        (([1], 5), IndexError, "Dimension out of range"),
        ((ptr.tensor([1.0]),), RuntimeError, "to have dtype of long, but got Float"),
        ((ptr.tensor([[1]]),), RuntimeError, "zero-dimensional or one-dimensional tensor, but got a tensor with 2"),
        ((ptr.tensor(1, device="meta"),), RuntimeError, "to be on cpu, but it's on meta"),
    ],
)
def test_what_tensor_split_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        ptr.zeros(5).tensor_split(*arguments)


@pytest.mark.parametrize("how", [1, [1], ptr.tensor(1)])
def test_a_number_cannot_be_split(how):
    with pytest.raises(RuntimeError, match="expected at least a 1-dimensional tensor, but got a tensor with 0 dims"):
        ptr.tensor(1.0).tensor_split(how)


def test_gradients_pass_tensor_split():
    x = ptr.randn(5, 2, dtype=ptr.float64).requires_grad_()
    for how in (3, [1, 1, 4]):
        assert gradcheck(lambda x, how=how: x.tensor_split(how), x)
        assert gradgradcheck(lambda x, how=how: [piece * piece for piece in x.tensor_split(how)], x)
    y = x * 1
    y.tensor_split(2)[0].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [[3, 3]] * 3 + [[1, 1]] * 2


def test_moveaxis_is_movedim():
    x = ptr.randn(2, 3, 4)
    assert x.moveaxis(0, -1).shape == (3, 4, 2)
    assert ptr.equal(ptr.moveaxis(x, (0, 1), (1, 2)), x.movedim((0, 1), (1, 2)))
    assert x.moveaxis(0, 1).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="repeated dim"):
        x.moveaxis((0, 0), (1, 2))
    assert gradcheck(lambda x: x.moveaxis(0, 2), ptr.randn(2, 3, 4, dtype=ptr.float64).requires_grad_())


@pytest.mark.parametrize("sections", [2**62, ptr.tensor(2**62)])
def test_more_sections_than_memory_are_an_error(sections):
    with pytest.raises(RuntimeError, match="not enough memory"):
        ptr.ones(4).tensor_split(sections)


def test_permute_knows_duplicates_among_many_dimensions():
    x = ptr.ones((1,) * 70)
    with pytest.raises(RuntimeError, match="duplicate dims are not allowed"):
        x.permute(*range(65), 65, 65, 65, 65, 65)
    y = x.expand(*[1] * 68, 2, 3).permute(*reversed(range(70)))
    assert y.shape == (3, 2, *[1] * 68)


def test_where_of_many_dimensions():
    places = ptr.where(ptr.tensor([[True, False], [True, True]]).view(*[1] * 68, 2, 2))
    assert len(places) == 70
    assert [p.tolist() for p in places[-2:]] == [[0, 1, 1], [0, 0, 1]]
    assert all(p.tolist() == [0, 0, 0] for p in places[:-2])

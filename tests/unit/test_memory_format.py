"""The strides of results: `channels_last` goes through a network, and copies keep the strides of what they copy."""

import ptr
import ptr.nn.functional as F
import pytest

LAST = ptr.channels_last


@pytest.mark.parametrize("dtype", [ptr.float32, ptr.float64, ptr.bfloat16])
@pytest.mark.parametrize(("of_input", "of_weight"), [(True, False), (False, True), (True, True), (False, False)])
def test_conv2d(dtype, of_input, of_weight):
    x = ptr.arange(2 * 3 * 5 * 5).reshape(2, 3, 5, 5).remainder(7).to(dtype)
    w = ptr.arange(4 * 3 * 3 * 3).reshape(4, 3, 3, 3).remainder(5).to(dtype)
    expected = F.conv2d(x, w)
    result = F.conv2d(
        x.to(memory_format=LAST) if of_input else x,
        w.to(memory_format=LAST) if of_weight else w,
    )
    assert result.stride() == ((36, 1, 12, 4) if of_input or of_weight else (36, 9, 3, 1))
    assert ptr.equal(result, expected)


def test_max_pool2d():
    x = ptr.rand(2, 3, 8, 8)
    expected = F.max_pool2d(x, 2, return_indices=True)
    for result, contiguous in zip(
        F.max_pool2d(x.to(memory_format=LAST), 2, return_indices=True), expected, strict=True
    ):
        assert result.stride() == (48, 1, 12, 3)
        assert ptr.equal(result, contiguous)


def test_a_dimension_of_size_1_keeps_its_stride():
    x = ptr.rand(2, 1, 4, 5).to(memory_format=LAST)
    for copy in [ptr.empty_like(x), x.double(), x.clone(), ptr.rand_like(x)]:
        assert copy.stride() == (20, 1, 5, 1)
    assert ptr.empty_like(ptr.rand(1, 5).t()).stride() == (1, 5)


def test_masked_fill_is_row_major():
    x = ptr.rand(5, 4, 3, 2).permute(3, 2, 1, 0)
    assert x.masked_fill(x > 0.5, 0).stride() == (60, 20, 5, 1)

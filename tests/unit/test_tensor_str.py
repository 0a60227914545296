"""Printing of tensors; the expected texts are PyTorch's."""

import ptr as torch
import pytest
from ptr import _tensor_str

inf, nan = float("inf"), float("nan")


@pytest.fixture(autouse=True)
def default_options():
    yield
    _tensor_str.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (1.0, "tensor(1.)"),
        (nan, "tensor(nan)"),
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([1.0, -2.0, 30.0], "tensor([ 1., -2., 30.])"),
        ([0.0, -0.0], "tensor([0., -0.])"),
        ([1.0, inf, nan], "tensor([1., inf, nan])"),
        ([0.5, inf, -inf, nan], "tensor([0.5000,    inf,   -inf,    nan])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1.0, 2000.5], "tensor([1.0000e+00, 2.0005e+03])"),
        ([1e9], "tensor([1.0000e+09])"),
        ([[1, 20], [-3, 4]], "tensor([[ 1, 20],\n        [-3,  4]])"),
        ([True, False], "tensor([ True, False])"),
        ([2**62, -1], "tensor([4611686018427387904,                  -1])"),
        ([1 + 2j, -3.5 - 0.25j], "tensor([ 1.0000+2.0000j, -3.5000-0.2500j])"),
        (1j, "tensor(0.+1.j)"),
        ([], "tensor([])"),
    ],
)
def test_values(values, text):
    assert _tensor_str._str(torch.tensor(values)) == text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: torch.tensor([1.5], dtype=torch.float64), "tensor([1.5000], dtype=ptr.float64)"),
        (lambda: torch.tensor([0.1], dtype=torch.float16), "tensor([0.1000], dtype=ptr.float16)"),
        (lambda: torch.tensor([0.1], dtype=torch.bfloat16), "tensor([0.1001], dtype=ptr.bfloat16)"),
        (lambda: torch.tensor([1], dtype=torch.uint8), "tensor([1], dtype=ptr.uint8)"),
        (lambda: torch.zeros(0, dtype=torch.int32), "tensor([], dtype=ptr.int32)"),
        (lambda: torch.zeros(2, 0, 3), "tensor([], size=(2, 0, 3))"),
        (lambda: torch.zeros(3, 4, device="meta"), "tensor(..., device='meta', size=(3, 4))"),
        (
            lambda: torch.zeros(3, device="meta", dtype=torch.int64),
            "tensor(..., device='meta', size=(3,), dtype=ptr.int64)",
        ),
        (lambda: torch.ones(1, requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: torch.ones(1, requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
        (lambda: torch.arange(4.0).reshape(2, 2).t(), "tensor([[0., 2.],\n        [1., 3.]])"),
        (
            lambda: torch.arange(8).reshape(2, 2, 2),
            "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])",
        ),
    ],
)
def test_suffixes_and_layout(make, text):
    assert _tensor_str._str(make()) == text
    assert repr(make()) == text


def test_long_tensors_show_their_edges():
    assert _tensor_str._str(torch.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert _tensor_str._str(torch.arange(1200).reshape(3, 400)) == (
        "tensor([[   0,    1,    2,  ...,  397,  398,  399],\n"
        "        [ 400,  401,  402,  ...,  797,  798,  799],\n"
        "        [ 800,  801,  802,  ..., 1197, 1198, 1199]])"
    )


@pytest.mark.parametrize(
    ("options", "make", "text"),
    [
        ({"precision": 2}, lambda: torch.tensor([1.12345]), "tensor([1.12])"),
        ({"sci_mode": True}, lambda: torch.tensor([1.0, 2.5]), "tensor([1.0000e+00, 2.5000e+00])"),
        ({"sci_mode": False}, lambda: torch.tensor([1e-7, 1.0]), "tensor([0.0000, 1.0000])"),
        ({"linewidth": 20}, lambda: torch.arange(6), "tensor([0, 1, 2, 3,\n        4, 5])"),
        (
            {"edgeitems": 1, "threshold": 5},
            lambda: torch.arange(30).reshape(5, 6),
            "tensor([[ 0,  ...,  5],\n        ...,\n        [24,  ..., 29]])",
        ),
        ({"edgeitems": 0, "threshold": 5}, lambda: torch.arange(9), "tensor([...], size=(9,))"),
        ({"profile": "short"}, lambda: torch.tensor([1.12345]), "tensor([1.12])"),
    ],
)
def test_options(options, make, text):
    with _tensor_str.printoptions(**options):
        assert _tensor_str._str(make()) == text
    assert _tensor_str.get_printoptions() == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }


def test_subclasses_and_contents():
    class Sub(torch.Tensor):
        pass

    assert _tensor_str._str(torch.ones(1).as_subclass(Sub)) == "Sub([1.])"
    assert _tensor_str._str(torch.ones(1), tensor_contents="x") == "tensor(x)"


def test_numbers_of_eight_bits():
    INF, NAN = float("inf"), float("nan")
    x = torch.tensor([1, 2.5, -3.25, 0.0078, 448, 0])
    assert repr(x.to(torch.float8_e4m3fn)) == (
        "tensor([ 1.0000e+00,  2.5000e+00, -3.2500e+00,  7.8125e-03,  4.4800e+02,\n"
        "         0.0000e+00], dtype=ptr.float8_e4m3fn)"
    )
    assert repr(x.to(torch.float8_e4m3fnuz)) == (
        "tensor([ 1.0000,  2.5000, -3.2500,  0.0078,     nan,  0.0000],\n       dtype=ptr.float8_e4m3fnuz)"
    )
    assert repr(x[:3].to(torch.float8_e8m0fnu)) == "tensor([1., 2., 4.], dtype=ptr.float8_e8m0fnu)"
    assert repr(torch.tensor(1.5).to(torch.float8_e5m2)) == "tensor(1.5000, dtype=ptr.float8_e5m2)"
    assert repr(torch.tensor([INF, NAN, 1]).to(torch.float8_e5m2)) == "tensor([inf, nan, 1.], dtype=ptr.float8_e5m2)"
    assert repr(torch.tensor([1.5, 2], dtype=torch.float8_e5m2)) == "tensor([1.5000, 2.0000], dtype=ptr.float8_e5m2)"
    assert repr(torch.ones(2000, dtype=torch.float8_e5m2)) == (
        "tensor([1., 1., 1.,  ..., 1., 1., 1.], dtype=ptr.float8_e5m2)"
    )
    assert torch.zeros(2, dtype=torch.float8_e4m3fn).tolist() == [0, 0]


def test_every_number_of_eight_bits_is_that_of_its_format():
    bytes = torch.arange(256, dtype=torch.uint8)
    for dtype, largest, smallest in [
        (torch.float8_e4m3fn, 448, 2**-9),
        (torch.float8_e5m2, 57344, 2**-16),
        (torch.float8_e4m3fnuz, 240, 2**-10),
        (torch.float8_e5m2fnuz, 57344, 2**-17),
        (torch.float8_e8m0fnu, 2.0**127, 2.0**-127),
    ]:
        values = bytes.view(dtype).to(torch.float64)
        finite = values[values.isfinite()]
        assert finite.max().item() == largest
        assert finite[finite > 0].min().item() == smallest
        numbers = ~values.isnan()
        assert torch.equal(values.to(dtype).view(torch.uint8)[numbers], bytes[numbers])

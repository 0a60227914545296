"""What `out=` accepts: the dtypes, overlaps and devices that PyTorch accepts, and an error of its class otherwise."""

import ptr
import pytest

F, D, H, I, C, B = ptr.float32, ptr.float64, ptr.float16, ptr.int64, ptr.complex64, ptr.bool


def new(dtype, *sizes):
    return ptr.empty(sizes or (0,), dtype=dtype)


def values():
    return ptr.tensor([3.0, 1.0, 2.0])


def whole():
    return ptr.tensor([3, 1, 2])


@pytest.mark.parametrize(
    "call",
    [
        lambda: ptr.sort(values(), out=(new(D), new(I))),
        lambda: ptr.sort(values(), out=(new(F), new(ptr.int32))),
        lambda: ptr.sort(values(), stable=True, out=(new(F), new(ptr.int32))),
        lambda: ptr.argsort(values(), stable=True, out=new(F)),
        lambda: ptr.nonzero(values(), out=new(ptr.int32)),
        lambda: ptr.masked_select(values(), values() > 1, out=new(D)),
        lambda: ptr.softmax(values(), 0, out=new(D)),
        lambda: ptr.softmax(values(), 0, dtype=D, out=new(F)),
        lambda: ptr.log_softmax(values(), 0, out=new(H)),
        lambda: ptr.mean(values(), dtype=D, out=new(F)),
        lambda: ptr.mean(values(), 0, dtype=D, out=new(F)),
        lambda: ptr.norm(values(), out=new(D)),
        lambda: ptr.norm(values(), 2, 0, out=new(I)),
        lambda: ptr.norm(values(), dtype=D, out=new(F)),
        lambda: ptr.clamp_min(values(), 2, out=new(D)),
        lambda: ptr.clamp(whole(), 2.5, out=new(D)),
        lambda: ptr.lerp(values(), values(), values(), out=new(D)),
        lambda: ptr.round(values(), decimals=1, out=new(D)),
        lambda: ptr.negative(values(), out=new(D)),
        lambda: ptr.absolute(whole(), out=new(ptr.int32)),
        lambda: ptr.matmul(values(), values(), out=new(D)),
        lambda: ptr.mv(values()[None], values(), out=new(D)),
        lambda: ptr.argmax(values(), out=new(F)),
        lambda: ptr.argmax(values(), 0, out=values()),
    ],
)
def test_outputs_that_must_have_the_dtype_of_the_result(call):
    with pytest.raises(RuntimeError, match="dtype"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ptr.cat((values(), values()), out=new(I)),
        lambda: ptr.cat((whole(), values()), out=new(I)),
        lambda: ptr.cat((whole(), whole() * 1j), out=new(F)),
        lambda: ptr.concat((values(), values()), out=new(B)),
        lambda: ptr.stack((values(), values()), out=new(I)),
    ],
)
def test_joined_tensors_must_fit_the_output(call):
    with pytest.raises(TypeError, match="input types can't be cast to the desired output type"):
        call()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ptr.cat((whole(), whole()), out=new(F)), [3.0, 1, 2, 3, 1, 2]),
        (lambda: ptr.stack((values(), whole()), out=new(D)), [[3.0, 1, 2], [3, 1, 2]]),
        (lambda: ptr.max(values(), out=new(D)), 3.0),
        (lambda: ptr.min(whole(), out=new(C)), 1 + 0j),
        (lambda: ptr.mean(values(), 0, out=new(D)), 2.0),
        (lambda: ptr.lerp(values(), values(), 0.5, out=new(D)), [3.0, 1, 2]),
        (lambda: ptr.square(values(), out=new(D)), [9.0, 1, 4]),
        (lambda: ptr.multiply(whole(), 2, out=new(F)), [6.0, 2, 4]),
        (lambda: ptr.remainder(whole(), 2, out=new(F)), [1.0, 1, 0]),
        (lambda: ptr.pow(2, whole(), out=new(F)), [8.0, 2, 4]),
        (lambda: ptr.eq(values(), 2, out=new(F)), [0.0, 0, 1]),
        (lambda: ptr.softmax(whole(), 0, dtype=D, out=new(D)).sum(), pytest.approx(1.0)),
        (lambda: ptr.bernoulli(ptr.tensor([0.0, 1.0]), out=new(I)), [0, 1]),
        (lambda: ptr.normal(whole(), 0.0, out=new(F)), [3.0, 1, 2]),
        (lambda: ptr.normal(1.0, ptr.zeros(2, dtype=I), out=new(D)), [1.0, 1]),
        (lambda: ptr.nn.functional.mse_loss(values(), values()), 0.0),
        (lambda: ptr.ops.aten.threshold.out(whole(), 2, 0, out=new(F)), [3.0, 0, 0]),
    ],
)
def test_outputs_that_the_result_is_cast_to(call, expected):
    assert call().tolist() == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ptr.absolute(x, out=x.t()),
        lambda x: ptr.square(x, out=x.t()),
        lambda x: ptr.subtract(x, 1, out=x.t()),
        lambda x: ptr.eq(x, 1, out=x.t()),
        lambda x: ptr.eq(x, ptr.ones(2, 2), out=x.t()),
        lambda x: ptr.clamp_max(x, 1, out=x.t()),
        lambda x: ptr.round(x, decimals=1, out=x.t()),
        lambda x: ptr.remainder(x, 2, out=x.t()),
        lambda x: ptr.stack((x[0], x[1]), out=x),
        lambda x: ptr.sort(x, out=(x.t(), new(I))),
        lambda x: ptr.sort(x, stable=True, out=(x.t(), new(I))),
        lambda x: ptr.max(x, 0, out=(x.view(-1)[1:3], new(I))),
    ],
)
def test_outputs_over_other_elements_of_an_input(call):
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        call(ptr.ones(2, 2))


def test_filling_a_place_several_times():
    assert ptr.zeros(1).expand(3).fill_(2).tolist() == [2.0, 2.0, 2.0]
    assert ptr.ones(1).expand(3).zero_().tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ptr.nn.functional.mse_loss(whole(), whole()),
        lambda: ptr.nn.functional.mse_loss(values() * 1j, values()),
        lambda: ptr.clamp(ptr.tensor([True]), True),
        lambda: ptr.clamp(ptr.tensor([True]), ptr.tensor(True), ptr.tensor(True)),
        lambda: ptr.clamp(ptr.tensor([1j]), ptr.tensor(True)),
        lambda: ptr.linspace(0, 1, 3, dtype=B),
        lambda: ptr.linspace(0, 1, 3, out=new(B)),
        lambda: ptr.round(whole(), decimals=0),
    ],
)
def test_dtypes_without_a_kernel(call):
    with pytest.raises(NotImplementedError, match="not implemented for|not supported for"):
        call()


@pytest.mark.parametrize(("dtype", "word"), [(B, "bool"), (C, "complex")])
def test_positions_of_extremes_need_an_order(dtype, word):
    with pytest.raises(RuntimeError, match=rf"argmax\(\): does not support {word} input"):
        ptr.argmax(ptr.ones(2, dtype=dtype))


def test_randperm_writes_any_dtype():
    assert sorted(ptr.randperm(3, out=new(F)).tolist()) == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
        ptr.randperm(3, dtype=ptr.int32, out=new(F))


def test_linear_writes_only_its_own_dtype():
    with pytest.raises(RuntimeError, match="dtype"):
        ptr._C._nn.linear(ptr.ones(2, 3), ptr.ones(2, 3), out=ptr.zeros(2, 2, dtype=ptr.float64))

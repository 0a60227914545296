"""Arguments that have crashed, hung or been taken for a bug: an exception of PyTorch's class, or a result."""

import numpy as np
import ptr
import pytest

HUGE = 2**62
aten = ptr.ops.aten


def ones(*sizes):
    """Ones that take no memory."""
    return ptr.ones(1, requires_grad=True).expand(sizes)


@pytest.mark.parametrize(
    "reduce",
    ["all", "any", "sum", "mean", "prod", "max", "min", "argmax", "amax"],
)
def test_reductions_of_more_elements_than_memory_has_are_errors(reduce):
    name = {"mean": "sum"}.get(reduce, reduce)
    with pytest.raises(ptr.OutOfMemoryError, match=rf"(?s)intermediate values.*in {name}\(\)"):
        getattr(ptr.zeros(1).expand(HUGE), reduce)()


def test_normalizing_nothing():
    output, mean, rstd = aten.native_layer_norm.default(ptr.zeros(0, 1), [0, 1], None, None, 1e-5)
    assert output.shape == (0, 1)
    assert mean.isnan().all() and rstd.isnan().all()


def test_local_scalar_dense_reads_the_first_element():
    assert aten._local_scalar_dense.default(ptr.tensor([3.0, 4.0])) == 3.0


def test_strides_that_nothing_steps_along_may_be_anything():
    assert ptr.zeros(10).as_strided([1], [2**63 - 1], 9).tolist() == [0.0]
    assert repr(ptr.ones(5)[::HUGE]) == "tensor([1.])"
    assert ptr.ones(5)[::HUGE].gather(0, ptr.tensor([0])).tolist() == [1.0]


def test_deep_nesting_is_a_recursion_error():
    with pytest.raises(RecursionError):
        ptr.zeros([1] * 100_000).tolist()


def test_operators_called_by_overload_refuse_wrong_types():
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'other'"):
        aten.add.Tensor(ptr.ones(1), "x")


def test_tolist_needs_a_storage():
    class Wrapper(ptr.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "never"

    with pytest.raises(RuntimeError, match="tolist"):
        ptr.Tensor._make_wrapper_subclass(Wrapper, size=(3,)).tolist()


def meta(*sizes, dtype=ptr.float32):
    return ptr.zeros(*sizes, dtype=dtype, device="meta")


LONG = ptr.int64


@pytest.mark.parametrize(
    "call",
    [
        lambda: ptr.mm(ptr.ones(1, 3), meta(3, 4)),
        lambda: ptr.zeros(3).scatter_add(0, ptr.zeros(3, dtype=LONG), meta(3)),
        lambda: ptr.zeros(3).scatter_(0, ptr.zeros(3, dtype=LONG), meta(3)),
        lambda: ptr.ones(3).scatter(0, meta(1, dtype=LONG), 1),
        lambda: ptr.gather(ptr.ones(3), 0, meta(1, dtype=LONG)),
        lambda: ptr.nn.functional.nll_loss(ptr.zeros(2, 3), meta(2, dtype=LONG)),
        lambda: ptr.cat([ptr.ones(1), meta(1)]),
        lambda: ptr.ones(2, 3).__setitem__([True, False], meta(1)),
        lambda: aten.index.Tensor(ptr.ones(3), [meta(1, dtype=LONG)]),
        lambda: ptr.ones(3).index_put_([meta(1, dtype=LONG)], ptr.ones(1)),
    ],
)
def test_tensors_of_two_devices_are_refused(call):
    with pytest.raises(RuntimeError, match="same device"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: y.scatter_(0, ptr.arange(9), x),
        lambda x, y: y.scatter_add_(0, ptr.arange(9), x),
        lambda x, y: y.index_add_(0, ptr.arange(9), x),
        lambda x, y: y.index_put_((ptr.arange(9),), x),
        lambda x, y: ptr.gather(x, 0, ptr.arange(9), out=y),
        lambda x, y: ptr.index_select(x, 0, ptr.arange(9), out=y),
        lambda x, y: ptr.masked_select(x, x > 3, out=y),
        lambda x, y: ptr.cat([x[:4], x[4:]], out=y),
    ],
)
def test_what_is_written_may_not_lie_over_what_is_read(call):
    base = ptr.arange(10.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        call(base[:-1], base[1:])


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.index_add_(0, ptr.arange(3), ptr.ones(3)),
        lambda t: t.scatter_(0, ptr.arange(3), 1.0),
        lambda t: ptr.gather(ptr.ones(5), 0, ptr.arange(5), out=t),
        lambda t: ptr.mv(ptr.ones(5, 5), ptr.ones(5), out=t),
    ],
)
def test_what_is_written_may_not_lie_over_itself(call):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        call(ptr.ones(1).expand(5))


def test_a_product_into_one_of_its_factors_is_computed_apart():
    a, b = ptr.arange(9.0).reshape(3, 3), ptr.arange(9.0).reshape(3, 3) / 10
    expected = a @ b
    ptr.mm(a, b, out=a)
    assert ptr.equal(a, expected)
    vector = ptr.arange(3.0)
    expected = b @ vector
    ptr.mv(b, vector, out=vector)
    assert ptr.equal(vector, expected)


def test_an_output_that_is_an_input_keeps_its_size():
    a = ptr.zeros(3, 1)
    with pytest.raises(RuntimeError, match="broadcast shape"):
        ptr.logical_and(a, ptr.zeros(3, 5), out=a)


def test_an_output_with_a_lazy_bit_is_resized():
    out = ptr.ones(4, 5, dtype=ptr.complex64).conj()
    with pytest.warns(UserWarning, match="was resized"):
        assert ptr.add(ptr.ones(1, 5, dtype=ptr.complex64), 1, out=out).shape == (1, 5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ptr.zeros(HUGE, 0),
        lambda: ptr.zeros(0).view(2**63 - 1, 2**63 - 1, 0),
        lambda: aten.diagonal_backward.default(ptr.zeros(3, 2, 2), [0] + [HUGE] * 4, 1, 2, -1),
        lambda: ptr.zeros(2**50, 0).unbind(),
        lambda: ptr.zeros(2**50, 0).split(1),
    ],
)
def test_sizes_that_no_memory_holds_are_refused_though_nothing_is_in_them(call):
    with pytest.raises((RuntimeError, ptr.OutOfMemoryError), match="overflow|not enough memory"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, w: aten._conv_forward.default(x, w, None, [1], [0], [], 1),
        lambda x, w: aten._conv_forward.default(x, w, None, [1, 1], [0, 0], [1, 1], 0),
        lambda x, w: aten._conv_input_backward.default(x, w, [1, 1, 9, 9], [1, 1], [0, 0], [1, 1], 1),
        lambda x, w: aten._conv_weight_backward.default(x, x, [1, 1, 9, 9], [1, 1], [0, 0], [1, 1], 1),
        lambda x, w: aten._conv_weight_backward.default(x, x, [5, 2, 3, 3, 2], [2**62], [33, 5, 0, 4], [3], 2**62),
    ],
)
def test_convolutions_whose_arguments_do_not_fit_are_refused(call):
    with pytest.raises(RuntimeError, match="_conv_"):
        call(ptr.ones(1, 1, 3, 3), ptr.ones(1, 1, 1, 1))


def test_a_single_sample_has_a_single_target():
    with pytest.raises(RuntimeError, match="target"):
        aten.nll_loss_nd.default(ptr.zeros(0, dtype=ptr.float64), ptr.zeros(0, dtype=ptr.uint8), reduction=1)


def test_data_of_another_kind_is_refused():
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        ptr.ones(3).data = meta(3)


def test_saving_pins_what_it_writes():
    import io

    tensor = ptr.ones(100_000)

    class Shrinking(io.BytesIO):
        def write(self, data):
            tensor.untyped_storage().resize_(0)
            self.others = [ptr.full((100_000,), 7.0) for _ in range(5)]
            return super().write(data)

    file = Shrinking()
    ptr.save(tensor, file)
    file.seek(0)
    assert ptr.load(file).sum().item() == 100_000


@pytest.mark.parametrize("dtype", [ptr.float32, ptr.float64, ptr.int16, ptr.complex64])
def test_memory_that_is_not_aligned_is_refused(dtype):
    buffer = bytearray(65)
    with pytest.raises(RuntimeError, match="aligned"):
        ptr.frombuffer(buffer, dtype=dtype, offset=1, count=2)
    with pytest.raises(RuntimeError, match="aligned"):
        ptr.frombuffer(buffer, dtype=ptr.uint8, offset=1, count=64).view(dtype).add(1)


def test_pairs_of_floats_need_the_alignment_of_a_float():
    buffer = np.arange(2 * 64 * 70 + 1, dtype=np.float32).tobytes()
    x = ptr.frombuffer(bytearray(buffer), dtype=ptr.complex64, offset=4).reshape(64, 70)
    expected = ptr.tensor(x.numpy().copy() @ np.ones((70, 64), dtype=np.complex64))
    assert ptr.allclose(x @ ptr.ones(70, 64, dtype=ptr.complex64), expected, rtol=1e-4)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ptr.empty(0).chunk(2**45),
        lambda: ptr.empty(0).chunk(HUGE),
        lambda: ptr.zeros(3).index_add_(0, ptr.zeros(1, dtype=LONG).expand(2**45), ptr.ones(1).expand(2**45)),
        lambda: ptr.ones(1).expand(2, 2**45) @ ptr.ones(1).expand(2**45, 1),
        lambda: ptr.conv1d(ones(1, 2**45, 1), ones(1, 2**45, 1)),
        lambda: ptr.nn.functional.nll_loss(ones(2**60, 3), ptr.zeros(1, dtype=LONG).expand(2**60)),
        lambda: ptr.ones(3).tensor_split(2**45),
    ],
)
def test_intermediate_values_that_no_memory_holds_are_errors(call):
    with pytest.raises(ptr.OutOfMemoryError):
        call()


def test_steps_beyond_the_end_are_steps():
    x = ptr.arange(5.0)[1 :: 2**63 - 1]
    assert [y.item() for y in x] == [1.0]
    assert [y.tolist() for y in x.unbind(0)] == [1.0]
    assert [y.tolist() for y in x.split(1)] == [[1.0]]
    assert x.numpy().tolist() == [1.0]
    assert x.view(ptr.int32).tolist() == [1065353216]
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        ptr.arange(5).narrow(0, 1, 2**63 - 1)


def test_a_stride_beyond_the_image_is_a_stride():
    x, w = ptr.ones(1, 1, 4, 4), ptr.ones(1, 1, 2, 2)
    assert ptr.nn.functional.conv2d(x, w, stride=2**63 - 1).tolist() == [[[[4.0]]]]
    with pytest.raises(RuntimeError, match="overflow|small"):
        ptr.nn.functional.max_pool2d(x, 2, dilation=2**63 - 1)


def test_a_mask_takes_an_element_of_the_tensor_itself():
    x = ptr.arange(4.0)
    x[x > 1] = x[0]
    assert x.tolist() == [0, 1, 0, 0]
    y = ptr.arange(6.0).reshape(2, 3)
    y[ptr.tensor([True, False])] = 7
    assert y.tolist() == [[7, 7, 7], [3, 4, 5]]


@pytest.mark.parametrize("dtype", [ptr.float16, ptr.bfloat16])
def test_the_mean_of_halves_is_summed_in_float32(dtype):
    x = ptr.full((100, 3), 1000.0, dtype=dtype)
    assert x.mean().item() == 1000
    assert x.mean(0).tolist() == [1000] * 3
    assert x.mean(0).dtype == dtype


def test_a_window_much_larger_than_the_image_looks_at_the_image_alone():
    x = ptr.arange(16.0).reshape(1, 1, 4, 4)
    out = ptr.nn.functional.max_pool2d(x, [1, 2**30], padding=[0, 2**29], stride=1)
    assert out.amax(3).tolist() == [[[3.0, 7.0, 11.0, 15.0]]]


class TestDtypesOfOperands:
    """A kernel gets pointers to the type that it was compiled for, or it does not run."""

    def test_abs_of_complex_into_another_dtype(self):
        x = ptr.tensor([3 + 4j, 1, 3 - 4j, 0])
        memory = bytearray(16)
        out = ptr.frombuffer(memory, dtype=ptr.uint8, count=4)
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Byte"):
            ptr.abs(x, out=out)
        assert memory == bytearray(16)
        for dtype in [ptr.float16, ptr.float32, ptr.float64]:
            assert ptr.abs(x, out=ptr.empty(0, dtype=dtype)).tolist() == [5, 1, 5, 0]

    @pytest.mark.parametrize("dtype", [ptr.int64, ptr.float64, ptr.uint8])
    def test_where_into_another_dtype(self, dtype):
        condition = ptr.tensor([True, False])
        with pytest.raises(RuntimeError, match="Expected out type to be Float"):
            ptr.where(condition, ptr.ones(2), ptr.zeros(2), out=ptr.empty(2, dtype=dtype))

    def test_index_into_another_dtype(self):
        with pytest.raises(RuntimeError, match="must have the same scalar type"):
            ptr.ops.aten.index.Tensor_out(ptr.ones(3), [ptr.tensor([0, 2])], out=ptr.empty(2, dtype=ptr.int8))

    @pytest.mark.parametrize("which", ["weight", "bias"])
    def test_convolution(self, which):
        operands = {
            "input": ptr.ones(1, 2, 3, 3, dtype=ptr.float64),
            "weight": ptr.ones(2, 2, 1, 1),
            "bias": ptr.ones(2),
        }
        operands = {name: value.half() if name == which else value.double() for name, value in operands.items()}
        with pytest.raises(RuntimeError):
            ptr.ops.aten._conv_forward(*operands.values(), [1, 1], [0, 0], [1, 1], 1)
        with pytest.raises(RuntimeError):
            ptr.nn.functional.conv2d(*operands.values())

    def test_nll_loss(self):
        scores, target = ptr.zeros(2, 3, dtype=ptr.float64), ptr.tensor([0, 2])
        one = ptr.ones((), dtype=ptr.float64)
        for grad, total in [(one.half(), one), (one, one.half())]:
            with pytest.raises(RuntimeError, match="expected scalar type Double but found Half"):
                ptr.ops.aten.nll_loss_backward(grad, scores, target, None, 1, -100, total)

    def test_class_weights_are_a_vector(self):
        scores, target = ptr.zeros(2, 100000), ptr.tensor([99999, 99999])
        for shape in [(1, 100000), (100000, 1)]:
            with pytest.raises(RuntimeError, match="weight tensor should be defined either for all"):
                ptr.nn.functional.cross_entropy(scores, target, weight=ptr.ones(shape))


class TestFusedSgdOnOverlappingMemory:
    def test_partial_overlap_is_refused(self):
        x = ptr.arange(20001.0)
        parameter = x[1:].detach().requires_grad_()
        parameter.grad = x[:-1].detach()
        for fused in [True, None]:
            with pytest.raises(RuntimeError, match="unsupported operation"):
                ptr.optim.SGD([parameter], lr=0.5, fused=fused).step()

    def test_a_parameter_that_is_its_own_gradient(self):
        parameter = ptr.ones(20001, requires_grad=True)
        parameter.grad = parameter.detach()
        ptr.optim.SGD([parameter], lr=0.25, fused=True).step()
        assert (parameter == 0.75).all()


@pytest.mark.parametrize("groups", [1, 2])
def test_of_a_kernel_much_larger_than_the_image_only_the_taps_inside_count(groups):
    x = ptr.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]], requires_grad=True)
    weight = ones(2, 2 // groups, 100_000, 100_000)
    out = ptr.nn.functional.conv2d(x, weight, padding=50_000, groups=groups)
    sums = [10.0, 10.0] if groups == 1 else [3.0, 7.0]
    assert out.tolist() == [[[[total] * 3] * 2 for total in sums]]
    # Each element meets the taps of every place.
    grad = aten._conv_input_backward.default(
        ptr.ones_like(out), weight.detach(), x.shape, [1, 1], [50_000] * 2, [1, 1], groups
    )
    assert grad.tolist() == [[[[12.0 / groups] * 2]] * 2]


@pytest.mark.parametrize(("channels", "groups"), [(1, 1), (2, 2)])
def test_taps_outside_the_image_have_no_gradient(channels, groups):
    x = ptr.full((1, channels, 1), 3.0)
    weight = ptr.ones(channels, channels // groups, 7, requires_grad=True)
    ptr.conv1d(x, weight, padding=3, stride=2, groups=groups).sum().backward()
    assert weight.grad.tolist() == [[[0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0]]] * channels


def test_a_long_transposed_kernel_over_few_places():
    weight = ones(1, 1, 10**9).detach()
    out = aten._conv_input_backward.default(
        ptr.tensor([[[1.0, 2.0, 3.0]]]), weight, [1, 1, 5], [2], [500_000_000], [1], 1
    )
    assert out.tolist() == [[[6.0] * 5]]


@pytest.mark.parametrize("groups", [1, 2])
def test_a_kernel_whose_taps_no_memory_holds_is_an_error(groups):
    x, weight = ones(1, 2, 2**23, 2**23), ones(2, 2 // groups, 2**23, 2**23)
    with pytest.raises(ptr.OutOfMemoryError, match="in _conv_forward"):
        ptr.nn.functional.conv2d(x, weight, groups=groups)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: aten._softmax.default(x.half(), 0, True), "half to float conversion is not supported on CPU"),
        (lambda x: aten._log_softmax.default(x.half(), 0, True), "half to float conversion is not supported on CPU"),
        (lambda x: ptr.sort(x.to(ptr.complex64)), "Sort does not support complex dtypes on CPU"),
        (lambda x: x.bool().abs(), "\"abs_cpu\" not implemented for 'Bool'"),
        (lambda x: x.to(ptr.complex64).nansum(), "nansum on CPU does not support complex inputs"),
        (lambda x: x.nansum(dtype=ptr.complex64), "\"nansum_cpu\" not implemented for 'ComplexFloat'"),
        (lambda x: ptr.bernoulli(x.long()), "\"bernoulli_tensor_cpu_p_\" not implemented for 'Long'"),
    ],
)
def test_what_the_cpu_lacks_other_devices_may_have(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(ptr.zeros(3))
    result = call(meta(3))
    assert (result[0] if isinstance(result, tuple) else result).is_meta


class TestRangesOfDtypes:
    def test_randperm(self):
        with pytest.raises(RuntimeError, match="without overflow"):
            ptr.randperm(300, dtype=ptr.uint8)
        with pytest.raises(RuntimeError, match="n cannot be greater than 2049 for Half type"):
            ptr.randperm(5000, dtype=ptr.half)
        assert sorted(ptr.randperm(127, dtype=ptr.int8).tolist()) == list(range(127))

    def test_uniform(self):
        with pytest.raises(RuntimeError, match="exceed the limit"):
            ptr.ones(2).uniform_(-3e38, 3e38)
        with pytest.raises(RuntimeError, match="from is out of bounds"):
            ptr.ones(2).uniform_(-4e38, 1)
        with pytest.raises(RuntimeError, match="to is out of bounds"):
            ptr.ones(2, dtype=ptr.half).uniform_(0, 1e5)

    def test_linspace_of_one_step(self):
        assert ptr.linspace(1, float("nan"), 1).tolist() == [1]
        assert ptr.linspace(float("-inf"), float("-inf"), 1).tolist() == [float("-inf")]


@pytest.mark.parametrize("ndim", [0, 1])
def test_batch_norm_needs_a_dimension_of_channels(ndim):
    x = ptr.ones((3,) * ndim)
    weight = ptr.ones(3)
    with pytest.raises(RuntimeError, match="expected an input of at least 2 dimensions"):
        ptr.ops.aten.native_batch_norm_backward(
            x, x, weight, None, None, weight, weight, True, 1e-5, [True, True, True]
        )


@pytest.mark.parametrize("pool", ["adaptive_max_pool3d", "adaptive_avg_pool3d"])
def test_pooling_to_nothing_makes_no_tables_of_its_length(pool):
    x = ptr.randn(1, 3, 8, 8, requires_grad=True)
    result = getattr(ptr.nn.functional, pool)(x, (0, 2**40, 4))
    assert result.shape == (1, 0, 2**40, 4)
    result.sum().backward()
    assert not x.grad.any()


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_interpolating_nothing_makes_no_tables_of_its_length(mode):
    x = ptr.randn(0, 3, 8, 8, requires_grad=True)
    result = ptr.nn.functional.interpolate(x, (2**30, 2**20), mode=mode)
    result.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("pool", ["max_pool2d", "avg_pool2d", "adaptive_max_pool2d", "adaptive_avg_pool2d"])
def test_what_nothing_flows_into_has_no_gradient(pool):
    x = ptr.randn(0, 3, 8, 8, requires_grad=True)
    getattr(ptr.nn.functional, pool)(x, 2).sum().backward()
    assert x.grad.shape == x.shape

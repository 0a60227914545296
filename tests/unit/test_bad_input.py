"""Arguments that have crashed, hung or been taken for a bug: an exception of PyTorch's class, or a result."""

import ptr
import pytest

HUGE = 2**62
aten = ptr.ops.aten


@pytest.mark.parametrize(
    "reduce",
    ["all", "any", "sum", "mean", "prod", "max", "min", "argmax", "amax"],
)
def test_reductions_of_more_elements_than_memory_has_are_errors(reduce):
    with pytest.raises(ptr.OutOfMemoryError, match="intermediate values"):
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

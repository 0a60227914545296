"""What operators accept and how they refuse."""

from __future__ import annotations

import ptr
import pytest


@pytest.fixture
def x():
    return ptr.ones(2, 2)


def test_numpy_names_are_taken(x):
    assert ptr.sum(x, axis=0, keepdims=True).shape == (1, 2)
    assert ptr.sum(x=x, axis=0).tolist() == [2.0, 2.0]


def test_varargs_integers(x):
    assert x.view(4).shape == x.view((4,)).shape == x.reshape(-1).shape == (4,)
    assert x.permute(1, 0).shape == x.permute([1, 0]).shape == (2, 2)
    assert ptr.zeros(2, 3).shape == ptr.zeros((2, 3)).shape == ptr.zeros(size=(2, 3)).shape == (2, 3)


def test_numbers_stand_for_tensors_where_torch_says_so(x):
    assert ptr.add(x, 1).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert (1 - x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert (ptr.tensor([1, 2]) + 1.5).dtype is ptr.float32
    assert (ptr.tensor([1.0]) * ptr.tensor(2, dtype=ptr.float64)).dtype is ptr.float32
    with pytest.raises(TypeError, match=r"relu\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        ptr.relu(1)


def test_factory_arguments():
    assert ptr.zeros(2, dtype=float).dtype is ptr.float64
    assert ptr.ones(2, requires_grad=True).requires_grad
    assert ptr.empty(2, device="meta").is_meta
    out = ptr.empty(3)
    assert ptr.ones(3, out=out) is out and out.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match=r"zeros\(\): argument 'dtype' must be torch.dtype, not str"):
        ptr.zeros(2, dtype="a")
    with pytest.raises(TypeError, match=r"zeros\(\): argument 'device' must be torch.device, not float"):
        ptr.zeros(2, device=1.5)
    with pytest.raises(TypeError, match=r"full\(\): argument 'size' \(position 1\) must be tuple of ints, not int"):
        ptr.full(2, 3)


def test_default_device_is_followed():
    with ptr.device("meta"):
        assert ptr.zeros(2).is_meta
        assert ptr.zeros(2, device="cpu").is_cpu
    assert ptr.zeros(2).is_cpu


def test_named_tuples():
    result = ptr.tensor([[1.0, 3.0], [2.0, 0.0]]).max(dim=1)
    assert result.values.tolist() == [3.0, 2.0] and result.indices.tolist() == [1, 0]
    values, indices = result
    assert values is result.values and indices is result[1]
    assert repr(result).startswith("ptr.return_types.max(\nvalues=tensor([3., 2.]),\nindices=")
    assert type(result) is ptr.return_types.max


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.add("a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
        (lambda x: ptr.add(x, "a"), "add(): argument 'other' (position 2) must be Tensor, not str"),
        (lambda x: ptr.add(x, x, alpha="a"), "add(): argument 'alpha' must be Number, not str"),
        (lambda x: ptr.relu(), 'relu() missing 1 required positional arguments: "input"'),
        (lambda x: ptr.relu(x, x), "relu() takes 1 positional argument but 2 were given"),
        (lambda x: ptr.relu(x, foo=1), "relu() got an unexpected keyword argument 'foo'"),
        (lambda x: ptr.relu(x, input=x), "relu() got multiple values for argument 'input'"),
        (lambda x: x.relu(1), "TensorBase.relu() takes no arguments (1 given)"),
        (lambda x: ptr.cat([x, 1]), "expected Tensor as element 1 in argument 0, but got int"),
        (lambda x: ptr.cat(x, 1.5), "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
        (lambda x: ptr.zeros("a"), "zeros(): argument 'size' (position 1) must be tuple of ints, not str"),
        (
            lambda x: x.permute(0, "a"),
            "permute(): argument 'dims' failed to unpack the object at pos 2 with error "
            '"type must be tuple of ints,but got str"',
        ),
        (
            lambda x: x.requires_grad_(3),
            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not int",
        ),
    ],
)
def test_error_texts(x, call, message):
    with pytest.raises(TypeError) as caught:
        call(x)
    assert str(caught.value) == message


def test_overloads_are_listed_when_none_fits(x):
    with pytest.raises(TypeError) as caught:
        x.max("a")
    text = str(caught.value)
    assert text.startswith("max() received an invalid combination of arguments - got (str), but expected one of:\n")
    assert " * (Tensor other)\n      didn't match because some of the arguments have invalid types: (!str!)" in text


def test_operators_by_full_name(x):
    add = ptr.ops.aten.add.Tensor
    assert add(x, x, alpha=2).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert add.name() == "aten::add.Tensor" and str(add) == "aten.add.Tensor"
    assert add is ptr.ops.aten.add.Tensor
    assert "Tensor" in ptr.ops.aten.add.overloads()
    assert str(add._schema).startswith("aten::add.Tensor(Tensor self, Tensor other")
    with pytest.raises(AttributeError):
        ptr.ops.aten.no_such_operator


def test_tags_of_operators():
    Tag, aten = ptr.Tag, ptr.ops.aten
    assert aten.add.Tensor.tags == [Tag.core, Tag.pointwise, Tag.pt2_compliant_tag]
    assert aten.add_.Tensor.tags == [Tag.inplace, Tag.pointwise, Tag.pt2_compliant_tag]
    assert aten.add.out.tags == [Tag.out, Tag.pointwise, Tag.pt2_compliant_tag]
    assert aten.sum.dim_IntList.tags == [Tag.core, Tag.pt2_compliant_tag, Tag.reduction]
    assert aten.nonzero.default.tags == [Tag.core, Tag.dynamic_output_shape, Tag.pt2_compliant_tag]
    assert aten.bernoulli.default.tags == [Tag.nondeterministic_seeded, Tag.pt2_compliant_tag]
    assert aten.resize_.default.tags == [Tag.core, Tag.inplace, Tag.inplace_view, Tag.pt2_compliant_tag]
    assert aten.reshape.default.tags == aten.__and__.Tensor.tags == [Tag.pt2_compliant_tag]
    # Where PyTorch's forms differ.
    assert aten.abs_.default.tags == [Tag.inplace, Tag.pt2_compliant_tag]
    assert aten._foreach_add.Scalar_out.tags == [Tag.generated, Tag.out, Tag.pt2_compliant_tag]
    assert repr(Tag.core) == "<Tag.core: 0>" and str(Tag.core) == "Tag.core"
    assert int(Tag.view_copy) == 19 and Tag.pointwise in aten.mul.Tensor.tags


def test_tags_of_own_operators():
    library = ptr.library.Library("tagged", "DEF")
    try:
        library.define("one(Tensor x) -> Tensor", tags=ptr.Tag.pointwise)
        library.define("two(Tensor x) -> Tensor", tags=(ptr.Tag.core, ptr.Tag.needs_fixed_stride_order))
        assert ptr.ops.tagged.one.default.tags == [ptr.Tag.pointwise]
        assert ptr.ops.tagged.two.default.tags == [ptr.Tag.core, ptr.Tag.needs_fixed_stride_order]
        with pytest.raises(RuntimeError, match="pointwize is no tag"):
            library.define("three(Tensor x) -> Tensor", tags="pointwize")
    finally:
        library._destroy()

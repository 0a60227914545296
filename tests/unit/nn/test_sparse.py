"""Tables of vectors: `nn.Embedding`, `nn.EmbeddingBag` and their functions."""

import numpy as np
import ptr as torch
import ptr.nn.functional as F
import pytest
from ptr import nn

ENTRIES = [4, 1, 2, 2, 0, 3, 1]


def bags_of(offsets, last_is_end):
    ends = offsets[1:] if last_is_end else offsets[1:] + [len(ENTRIES)]
    return [ENTRIES[a:b] for a, b in zip(offsets, ends, strict=False)]


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("padding", [None, 2, -4])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_against_numpy(mode, padding, dtype, index_dtype):
    table = torch.arange(15.0, dtype=dtype).view(5, 3) - 4
    rows = table.double().numpy()
    for offsets, last_is_end in [([0, 3, 3, 6], False), ([0, 3, 3, 6], True), ([0], False), ([0], True)]:
        expected = []
        for bag in bags_of(offsets, last_is_end):
            used = rows[[e for e in bag if padding is None or e != padding % 5]]
            reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
            expected.append(reduce(used, axis=0) if len(used) else np.zeros(3))
        got = F.embedding_bag(
            torch.tensor(ENTRIES, dtype=index_dtype),
            table,
            torch.tensor(offsets),
            mode=mode,
            include_last_offset=last_is_end,
            padding_idx=padding,
        )
        assert got.dtype == dtype
        expected = np.array(expected).reshape(-1, 3)
        tolerance = 0.02 if dtype == torch.bfloat16 else 2e-3 if dtype == torch.float16 else 1e-6
        np.testing.assert_allclose(got.double().numpy(), expected, rtol=tolerance)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("last_is_end", [False, True])
def test_gradients_of_bags(mode, padding, last_is_end):
    torch.manual_seed(0)
    table = torch.randn(6, 3, dtype=torch.double, requires_grad=True)
    entries, offsets = torch.tensor([1, 2, 4, 0, 1]), torch.tensor([0, 2, 2, 4])

    def bags(table, factors=None):
        return F.embedding_bag(
            entries,
            table,
            offsets,
            mode=mode,
            padding_idx=padding,
            include_last_offset=last_is_end,
            per_sample_weights=factors,
        )

    assert torch.autograd.gradcheck(bags, (table,))
    assert torch.autograd.gradgradcheck(bags, (table,))
    if mode == "sum":
        factors = torch.rand(5, dtype=torch.double, requires_grad=True)
        assert torch.autograd.gradcheck(bags, (table, factors))
        assert torch.autograd.gradgradcheck(bags, (table, factors))


def test_rows_of_fixed_bags_are_those_of_a_lookup():
    table = torch.randn(7, 4)
    entries = torch.tensor([[1, 2, 6], [0, 0, 3]])
    factors = torch.rand(2, 3)
    looked_up = F.embedding(entries, table)
    torch.testing.assert_close(F.embedding_bag(entries, table), looked_up.mean(1))
    torch.testing.assert_close(F.embedding_bag(entries, table, mode="max"), looked_up.amax(1))
    scaled = F.embedding_bag(entries, table, mode="sum", per_sample_weights=factors)
    torch.testing.assert_close(scaled, (looked_up * factors[..., None]).sum(1))


def test_gradient_by_frequency():
    table = torch.zeros(3, 2, requires_grad=True)
    entries = torch.tensor([[0, 1], [0, 0]])
    F.embedding_bag(entries, table, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert table.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("offsets", [[], [0]])
def test_no_entries(offsets):
    table = torch.randn(3, 2, requires_grad=True)
    entries = torch.empty(0, dtype=torch.long)
    bags = F.embedding_bag(entries, table, torch.tensor(offsets, dtype=torch.long))
    assert bags.tolist() == [[0.0, 0.0]] * len(offsets)
    bags.sum().backward()
    assert table.grad.count_nonzero() == 0


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (RuntimeError, "index 3 is out of bounds", lambda t, i: F.embedding_bag(i + 1, t, torch.tensor([0]))),
        (RuntimeError, r"offsets\[0\] has to be 0", lambda t, i: F.embedding_bag(i, t, torch.tensor([1]))),
        (RuntimeError, "got offsets.* of 9", lambda t, i: F.embedding_bag(i, t, torch.tensor([0, 9]))),
        (RuntimeError, "must not decrease", lambda t, i: F.embedding_bag(i, t, torch.tensor([0, 2, 1]))),
        (RuntimeError, "must not decrease", lambda t, i: F.embedding_bag(i, t, torch.tensor([0, -(2**63)]))),
        (RuntimeError, "indices", lambda t, i: F.embedding_bag(i.float(), t, torch.tensor([0]))),
        (RuntimeError, "padding_idx must be within", lambda t, i: F.embedding_bag(i[None], t, padding_idx=7)),
        (ValueError, "offsets has to be a 1D Tensor", lambda t, i: F.embedding_bag(i, t)),
        (ValueError, "offsets has to be None", lambda t, i: F.embedding_bag(i[None], t, i)),
        (ValueError, "1D or 2D", lambda t, i: F.embedding_bag(i[None, None], t)),
        (ValueError, "one of sum, mean or max", lambda t, i: F.embedding_bag(i[None], t, mode="least")),
        (ValueError, "same shape", lambda t, i: F.embedding_bag(i[None], t, per_sample_weights=torch.ones(3))),
        (
            NotImplementedError,
            "only supported for mode='sum'",
            lambda t, i: F.embedding_bag(i[None], t, per_sample_weights=torch.ones(1, 3)),
        ),
    ],
)
def test_errors(error, message, call):
    with pytest.raises(error, match=message):
        call(torch.randn(3, 2), torch.tensor([0, 1, 2]))


def test_module():
    bag = nn.EmbeddingBag(4, 3, mode="sum", padding_idx=-1, max_norm=0.5)
    assert repr(bag) == "EmbeddingBag(4, 3, max_norm=0.5, mode='sum', padding_idx=3)"
    assert bag.weight[3].count_nonzero() == 0
    bag(torch.tensor([0, 1]), torch.tensor([0]))
    assert bag.weight[:2].norm(dim=1).max() <= 0.5 + 1e-6
    copy = nn.EmbeddingBag.from_pretrained(bag.weight.detach(), mode="max")
    assert not copy.weight.requires_grad
    entries = torch.tensor([[0, 2], [1, 3]])
    torch.testing.assert_close(copy(entries), copy.weight[entries].amax(1))
    with pytest.raises(AssertionError, match="within num_embeddings"):
        nn.EmbeddingBag(4, 3, padding_idx=4)

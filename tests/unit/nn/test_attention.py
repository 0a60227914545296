"""Attention against float64 formulas in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import ptr as torch
import pytest
from ptr import nn
from ptr.autograd import gradcheck
from ptr.nn import functional as F
from ptr.nn.attention import SDPBackend, sdpa_kernel


def reference(q, k, v, mask=None, causal=False, scale=None):
    q, k, v = (np.asarray(x.detach().tolist(), dtype=np.float64).reshape(x.shape) for x in (q, k, v))
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat(shared, 1), v.repeat(shared, 1)
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = np.where(np.tri(q.shape[2], k.shape[2], dtype=bool), scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(highest), 0, highest))
    total = weights.sum(-1, keepdims=True)
    return (weights / np.where(total == 0, 1, total)) @ v


@pytest.mark.parametrize(("queries", "keys", "width"), [(1, 7, 5), (3, 300, 8), (97, 33, 16), (130, 270, 20)])
@pytest.mark.parametrize("kind", ["none", "causal", "2d", "4d"])
def test_blocks_agree_with_the_formula(queries, keys, width, kind):
    torch.manual_seed(0)
    for heads, shared in itertools.product((2, 4), (False, True)):
        q = torch.randn(2, queries, heads, width).transpose(1, 2)
        k, v = (torch.randn(2, 2 if shared else heads, keys, width + 3)[..., :width] for _ in range(2))
        mask = {"2d": (queries, keys), "4d": (2, 1, 1, keys)}.get(kind)
        mask = None if mask is None else torch.randn(mask)
        found = F.scaled_dot_product_attention(q, k, v, mask, is_causal=kind == "causal", enable_gqa=shared)
        expected = reference(q, k, v, None if mask is None else mask.numpy(), kind == "causal")
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=2e-6)


def test_a_query_that_sees_nothing_has_zeros():
    q = torch.randn(1, 1, 3, 4, requires_grad=True)
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, True]])
    out = F.scaled_dot_product_attention(q, q, q, mask)
    assert out[0, 0, 1].tolist() == [0.0] * 4
    out.sum().backward()
    assert torch.isfinite(q.grad).all()


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal):
    torch.manual_seed(0)
    q = torch.randn(1, 4, 5, 3, dtype=torch.float64, requires_grad=True)
    k, v = (torch.randn(1, 2, 6, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(lambda *a: F.scaled_dot_product_attention(*a, is_causal=causal, enable_gqa=True), (q, k, v))


def test_backends():
    q = torch.randn(1, 2, 3, 4)
    assert torch._fused_sdp_choice(q, q, q) == SDPBackend.FLASH_ATTENTION
    with sdpa_kernel(SDPBackend.MATH):
        assert torch._fused_sdp_choice(q, q, q) == SDPBackend.MATH
    assert torch._fused_sdp_choice(q, q, q, dropout_p=0.5) == SDPBackend.MATH


def test_layers_have_pytorch_names():
    names = "in_proj_weight in_proj_bias out_proj.weight out_proj.bias".split()
    assert list(nn.MultiheadAttention(4, 2).state_dict()) == names
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    assert layer(torch.randn(3, 2, 4)).shape == (3, 2, 4)
    with pytest.raises(AssertionError, match="was expecting embedding dimension of 4, but got 5"):
        layer(torch.randn(3, 2, 5))

"""Operators of networks: first and second derivatives, and values that a wrong formula would miss."""

from __future__ import annotations

import pickle

import ptr as torch
import pytest
from ptr import nn
from ptr.autograd.gradcheck import gradcheck, gradgradcheck
from ptr.nn import functional as F


def rand(*sizes):
    torch.manual_seed(0)
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def prob(*sizes):
    torch.manual_seed(1)
    return (torch.rand(*sizes, dtype=torch.float64) * 0.8 + 0.1).requires_grad_()


TARGET = torch.linspace(0, 1, 12, dtype=torch.float64).view(3, 4)
WEIGHT = torch.linspace(0.5, 1.5, 4, dtype=torch.float64)
DIFFERENTIABLE = {
    "batch_norm": (lambda x: F.batch_norm(x, None, None, WEIGHT, WEIGHT, True), (3, 4, 2)),
    "batch_norm_eval": (lambda x: F.batch_norm(x, WEIGHT, WEIGHT, WEIGHT, None, False), (3, 4, 2)),
    "group_norm": (lambda x: F.group_norm(x, 2, WEIGHT, WEIGHT), (2, 4, 3)),
    "instance_norm": (lambda x: F.instance_norm(x, weight=WEIGHT), (2, 4, 3)),
    "rms_norm": (lambda x: F.rms_norm(x, (4,), WEIGHT), (2, 4)),
    "pad_reflect": (lambda x: F.pad(x, (2, 1, 1, 2), "reflect"), (1, 2, 3, 4)),
    "pad_replicate": (lambda x: F.pad(x, (2, -1), "replicate"), (2, 3, 4)),
    "pad_circular": (lambda x: F.pad(x, (2, 1), "circular"), (2, 3, 4)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (1, 2, 5, 6)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), (1, 2, 5, 6)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2, 1), (1, 2, 3, 3, 3)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (1, 2, 5, 3)),
    "bilinear": (lambda x: F.interpolate(x, (5, 3), mode="bilinear"), (1, 2, 3, 4)),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic", align_corners=True), (1, 1, 4, 4)),
    "antialias": (lambda x: F.interpolate(x, (2, 3), mode="bilinear", antialias=True), (1, 1, 5, 7)),
    "unfold": (lambda x: F.unfold(x, 2, padding=1, stride=2), (1, 2, 4, 5)),
    "fold": (lambda x: F.fold(x, (4, 4), 2, stride=2), (1, 8, 4)),
    "smooth_l1": (lambda x: F.smooth_l1_loss(x, TARGET), (3, 4)),
    "huber": (lambda x: F.huber_loss(x, TARGET, delta=0.7), (3, 4)),
    "soft_margin": (lambda x: F.soft_margin_loss(x, x.detach().sign()), (4, 3)),
    "logits": (lambda x: F.binary_cross_entropy_with_logits(x, TARGET, pos_weight=WEIGHT), (3, 4)),
    "conv_transpose2d": (
        lambda x: F.conv_transpose2d(x, x.detach().new_ones(2, 3, 2, 2), output_padding=1, dilation=2),
        (1, 2, 3, 3),
    ),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name):
    function, sizes = DIFFERENTIABLE[name]
    assert gradcheck(function, (rand(*sizes),))
    assert gradgradcheck(function, (rand(*sizes),))


def test_derivatives_of_binary_cross_entropy():
    x, t = prob(3, 2), prob(3, 2).detach().flip(0) if hasattr(torch.Tensor, "flip") else prob(3, 2).detach()
    assert gradcheck(lambda x: F.binary_cross_entropy(x, t), (x,))
    assert gradgradcheck(lambda x: F.binary_cross_entropy(x, t), (x,))


def test_running_statistics():
    norm = nn.BatchNorm1d(1, momentum=0.5)
    norm(torch.tensor([[1.0], [3.0]]))
    # The unbiased variance, 2, half way from 1.
    assert norm.running_mean.tolist() == [1.0] and norm.running_var.tolist() == [1.5]
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    assert torch.allclose(norm(torch.tensor([[1.0]])), torch.zeros(1, 1))


def test_circular_padding_does_not_bring_back_what_is_cut():
    x = torch.arange(4.0).view(1, 4)
    assert F.pad(x, (2, -1), "circular").tolist() == [[1.0, 2.0, 0.0, 1.0, 2.0]]


def test_channels_last_pools_like_row_major():
    x = torch.randn(2, 3, 5, 6)
    last = x.contiguous(memory_format=torch.channels_last)
    for function in (lambda t: F.avg_pool2d(t, 2), lambda t: F.interpolate(t, (7, 4), mode="bilinear")):
        out = function(last)
        assert out.is_contiguous(memory_format=torch.channels_last)
        assert torch.allclose(out, function(x))


def test_lazy_modules_are_found_and_pickled():
    namespace: dict = {}
    exec("from ptr.nn import *; from ptr.nn.functional import *", namespace)
    assert namespace["BatchNorm2d"] is nn.BatchNorm2d and namespace["interpolate"] is F.interpolate
    assert "GroupNorm" in dir(nn) and "layer_norm" in dir(F)
    module = pickle.loads(pickle.dumps(nn.Sequential(nn.Conv1d(1, 2, 3), nn.GroupNorm(1, 2))))
    assert isinstance(module[1], nn.GroupNorm)
    with pytest.raises(AttributeError):
        _ = nn.NoSuchModule

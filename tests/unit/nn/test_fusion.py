"""Folding batch norms into the layers before them, layouts of weights, modules without initialization."""

from __future__ import annotations

import ptr as torch
import pytest
from ptr import nn


def with_statistics(bn):
    with torch.no_grad():
        for i, tensor in enumerate((bn.running_mean, bn.running_var, bn.weight, bn.bias)):
            if tensor is not None:
                tensor.copy_(torch.arange(1.0, tensor.numel() + 1) / (i + 2))
    return bn.eval()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_convolutions(bias, affine, transpose):
    torch.manual_seed(0)
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(3, 4, 3, bias=bias).eval()
    bn = with_statistics(nn.BatchNorm2d(4, affine=affine))
    fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    x = torch.randn(2, 3, 6, 6)
    torch.testing.assert_close(fused(x), bn(conv(x)), rtol=1e-5, atol=1e-5)
    assert type(fused.weight) is nn.Parameter and fused is not conv


def test_linear_layers():
    torch.manual_seed(0)
    linear, bn = nn.Linear(3, 4).eval(), with_statistics(nn.BatchNorm1d(4))
    x = torch.randn(5, 3)
    torch.testing.assert_close(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), rtol=1e-5, atol=1e-5)
    with pytest.raises(AssertionError, match="out_features == bn.num_features"):
        nn.utils.fuse_linear_bn_eval(linear, with_statistics(nn.BatchNorm1d(3)))


def test_weights_keep_their_dtype():
    conv = nn.Conv1d(1, 1, 1).half().eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, with_statistics(nn.BatchNorm1d(1)))
    assert fused.weight.dtype is torch.float16 and fused.bias.dtype is torch.float16


def test_training_mode_is_refused():
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        nn.utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1))


def test_memory_format_of_weights():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Sequential(nn.ConvTranspose2d(2, 3, 3)), nn.Conv3d(2, 3, 3))
    weight = model[0].weight
    assert nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last) is model
    assert weight is model[0].weight and weight.stride() == (18, 1, 6, 2)
    assert model[1][0].weight.is_contiguous(memory_format=torch.channels_last) and model[2].weight.is_contiguous()
    nn.utils.convert_conv3d_weight_memory_format(model, torch.channels_last_3d)
    assert model[2].weight.is_contiguous(memory_format=torch.channels_last_3d)


def test_skip_init():
    layer = nn.utils.skip_init(nn.Linear, 5, 2, dtype=torch.float64)
    assert layer.weight.shape == (2, 5) and layer.weight.dtype is torch.float64 and layer.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="Expected a Module"):
        nn.utils.skip_init(int, 1)
    with pytest.raises(RuntimeError, match="support a 'device' arg"):
        nn.utils.skip_init(nn.ReLU)

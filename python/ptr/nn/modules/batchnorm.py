"""Batch and instance normalization as modules."""

from __future__ import annotations

import warnings

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init
from ptr.nn.modules.module import Module
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What normalizations of channels have in common: parameters, running statistics, loading and printing."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = Parameter(torch.empty(num_features, device=device, dtype=dtype))
            if bias:
                self.bias = Parameter(torch.empty(num_features, device=device, dtype=dtype))
            else:
                self.register_parameter("bias", None)
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long, device=device))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches that were seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the batches that were seen; weight one and bias zero."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: torch.Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            # Older files have no count of batches.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                ours = self.num_batches_tracked
                state_dict[key] = ours if ours is not None and not ours.is_meta else torch.tensor(0, dtype=torch.long)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize ``input``; in training also update the running statistics."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        # Outside of training they are used if they are tracked; in training they are updated.
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


_BATCH_NORM_DOC = """Normalizes each channel by the mean and deviation of the batch, then scales and shifts it.

    .. math::
        y = \\\\frac{{x - E[x]}}{{\\\\sqrt{{Var[x] + \\\\epsilon}}}} \\\\gamma + \\\\beta

    The variance that divides is the biased one. In training, running averages of the mean and the unbiased variance
    move by ``momentum`` towards those of the batch; in evaluation mode they are used in their place.

    Args:
        num_features: number of channels :math:`C`.
        eps: added to the variance. Default: 1e-5.
        momentum: weight of a new batch in the running averages; ``None`` averages all batches alike. Default: 0.1.
        affine: whether there are :math:`\\\\gamma` and :math:`\\\\beta`. Default: ``True``.
        track_running_stats: whether there are running averages; without them batches are normalized by themselves in
            evaluation mode, too. Default: ``True``.
        device, dtype: of parameters and averages.
        bias: whether there is :math:`\\\\beta`. Default: ``True``.

    Shape:
        - Input: {shape}
        - Output: the same
    """


class BatchNorm1d(_BatchNorm):
    __doc__ = _BATCH_NORM_DOC.format(shape=":math:`(N, C)` or :math:`(N, C, L)`")

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    __doc__ = _BATCH_NORM_DOC.format(shape=":math:`(N, C, H, W)`")

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    __doc__ = _BATCH_NORM_DOC.format(shape=":math:`(N, C, D, H, W)`")

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of several processes.

    It needs a device and a process group that this build does not have, so that training raises; in evaluation mode it
    is :class:`BatchNorm1d` for any number of dimensions.

    Args:
        num_features, eps, momentum, affine, track_running_stats: as of :class:`BatchNorm1d`.
        process_group: of the processes.
        device, dtype: of parameters and averages.
        bias: whether there is a shift. Default: ``True``.

    Raises:
        ValueError: called in training with a tensor that is not on a device of its own.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize ``input`` by the running statistics."""
        self._check_input_dim(input)
        if input.dim() >= 2 and input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")
        if self.training:
            raise ValueError("SyncBatchNorm expected input tensor to be on a GPU")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return ``module`` with every batch normalization in it made a :class:`SyncBatchNorm`."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            if module.affine:
                with torch.no_grad():
                    result.weight = module.weight
                    result.bias = module.bias
            result.running_mean = module.running_mean
            result.running_var = module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        raise NotImplementedError

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize ``input``."""
        self._check_input_dim(input)
        feature_dim = input.dim() - self._get_no_batch_dim()
        if input.size(feature_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(feature_dim)}."
                )
            warnings.warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        batched = input.dim() != self._get_no_batch_dim()
        out = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out if batched else out.squeeze(0)


_INSTANCE_NORM_DOC = """Normalizes each channel of each sample by its own mean and deviation.

    Args:
        num_features: number of channels :math:`C`.
        eps: added to the variance. Default: 1e-5.
        momentum: weight of a new batch in the running averages. Default: 0.1.
        affine: whether the channels are scaled and shifted. Default: ``False``.
        track_running_stats: whether there are running averages, used in evaluation mode. Default: ``False``.
        device, dtype: of parameters and averages.
        bias: whether the channels are shifted, if ``affine``. Default: ``True``.

    Shape:
        - Input: {shape}
        - Output: the same
    """


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _INSTANCE_NORM_DOC.format(shape=":math:`(N, C, L)` or :math:`(C, L)`")

    def _get_no_batch_dim(self) -> int:
        return 2

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _INSTANCE_NORM_DOC.format(shape=":math:`(N, C, H, W)` or :math:`(C, H, W)`")

    def _get_no_batch_dim(self) -> int:
        return 3

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() not in (3, 4):
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _INSTANCE_NORM_DOC.format(shape=":math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`")

    def _get_no_batch_dim(self) -> int:
        return 4

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() not in (4, 5):
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")

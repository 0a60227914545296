"""Recurrent layers and cells."""

from __future__ import annotations

import math
import numbers
import warnings

import ptr as torch
from ptr.nn import init
from ptr.nn.modules.module import Module
from ptr.nn.parameter import Parameter
from ptr.nn.utils.rnn import PackedSequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr import Tensor

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_VF: Any = torch._C._VariableFunctions

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


def _permuted(tensor: Tensor, permutation: Tensor) -> Tensor:
    return tensor.index_select(1, permutation)


class RNNBase(Module):
    """What :class:`RNN`, :class:`LSTM` and :class:`GRU` share: their parameters, and how a call prepares its input.

    The parameters of layer ``k`` are ``weight_ih_l{k}``, ``weight_hh_l{k}``, ``bias_ih_l{k}``, ``bias_hh_l{k}`` and,
    with a projection, ``weight_hr_l{k}``; those of the reverse direction have the suffix ``_reverse``. All are drawn
    from :math:`U(-\\sqrt k, \\sqrt k)` with ``k = 1 / hidden_size``.
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if not isinstance(dropout, numbers.Number):
            dropout = float(dropout)
        if not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size

        self._all_weights: list[list[str]] = []
        output_size = proj_size or hidden_size
        rows = _GATES[mode] * hidden_size
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                columns = input_size if layer == 0 else output_size * (2 if bidirectional else 1)
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, columns), "weight_hh": (rows, output_size)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(torch.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        # Looked up in the table of parameters first; parametrized or replaced ones are plain attributes.
        parameters = self._parameters
        return [
            parameters[name] if name in parameters else getattr(self, name)
            for names in self._all_weights
            for name in names
        ]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: the kernels take the parameters from wherever they are."""

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Check the dtype, the number of dimensions and the last size of the input.

        Raises:
            ValueError: the dtype is not the weights'.
            RuntimeError: the sizes do not fit.
        """
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: "
                f"input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0) if self.batch_first else input.size(1)

    def _state_size(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        return (self.num_layers * (2 if self.bidirectional else 1), self._batch(input, batch_sizes), size)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size that the hidden state has to have."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise a ``RuntimeError`` if a state's size is not the expected one."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and the state of a call."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state in the order in which a packed sequence has its sequences."""
        return hx if permutation is None else _permuted(hx, permutation)

    def _unbatched(self, hx: Any, batched: bool) -> Any:
        """The given state with a batch dimension."""
        ndim = 3 if batched else 2
        if hx.dim() != ndim:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {ndim}-D but got {hx.dim()}-D tensor")
        return hx if batched else hx.unsqueeze(1)

    def _initial(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        size = self.get_expected_hidden_size(input, batch_sizes)
        return torch.zeros(size, dtype=input.dtype, device=input.device)

    def _run(self, input: Tensor, batch_sizes: Tensor | None, hx: Any) -> Any:
        """Call the operator: the output, and the state."""
        operator = {"RNN_TANH": _VF.rnn_tanh, "RNN_RELU": _VF.rnn_relu, "GRU": _VF.gru}[self.mode]
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            return operator(input, hx, *options, self.batch_first)
        return operator(input, batch_sizes, hx, *options)

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        input, batch_sizes, sorted_indices, unsorted_indices = packed
        if hx is None:
            hx = self._initial(input, batch_sizes)
        else:
            # Each sequence of the user's is at another place in the packed ones.
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        output, state = self._run(input, batch_sizes, hx)
        output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return output, self.permute_hidden(state, unsorted_indices)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Run the layers.

        Args:
            input: ``(time, batch, input_size)``, ``(batch, time, input_size)`` if ``batch_first``,
                ``(time, input_size)`` for a single sequence, or a :class:`~ptr.nn.utils.rnn.PackedSequence`.
            hx: the state to start from; zeros if ``None``.

        Returns:
            the outputs of the last layer at every time, and the state of each layer and direction at the end.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            got = f"{input.dim()}D" + (" tensor" if self.mode.startswith("RNN") else "")
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {got} instead")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if hx is not None:
            hx = self._unbatched(hx, batched)
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._initial(input, None)
        self.check_forward_args(input, hx, None)
        output, state = self._run(input, None, hx)
        if batched:
            return output, state
        if isinstance(state, tuple):
            return output.squeeze(batch_dim), tuple(part.squeeze(1) for part in state)
        return output.squeeze(batch_dim), state.squeeze(1)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                shown += f", {name}={getattr(self, name)}"
        return shown


class RNN(RNNBase):
    """Layers of :math:`h_t = \\tanh(x_t W_{ih}^T + b_{ih} + h_{t-1} W_{hh}^T + b_{hh})` (Elman, 1990).

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: how many layers are stacked. Default: 1.
        nonlinearity: ``"tanh"`` or ``"relu"``. Default: ``"tanh"``.
        bias: whether there are ``bias_ih`` and ``bias_hh``. Default: ``True``.
        batch_first: whether input and output are ``(batch, time, feature)``. Default: ``False``.
        dropout: the probability of zeroing an output of a layer that is not the last. Default: 0.
        bidirectional: whether each layer also runs backwards in time. Default: ``False``.
        device, dtype: of the parameters.

    Shape:
        - Input: :math:`(L, N, H_{in})`, :math:`(L, H_{in})`, or packed
        - hx: :math:`(D * num\\_layers, N, H_{out})`
        - Output: :math:`(L, N, D * H_{out})` and the last hidden states, like ``hx``

    Example::

        >>> output, hn = nn.RNN(10, 20, 2)(torch.randn(5, 3, 10))
        >>> output.shape, hn.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Layers of gated recurrent units (Cho et al., 2014), the reset gate applied after the map of the hidden state.

    Arguments, shapes and parameters are those of :class:`RNN`, without ``nonlinearity``; the gates in the weights' rows
    are reset, update, new.

    Example::

        >>> output, hn = nn.GRU(10, 20, 2)(torch.randn(5, 3, 10))
        >>> output.shape
        torch.Size([5, 3, 20])
    """

    def __init__(self, input_size: int, hidden_size: int, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", input_size, hidden_size, *args, **kwargs)


class LSTM(RNNBase):
    """Layers of long short-term memory (Hochreiter and Schmidhuber, 1997; forget gates: Gers et al., 2000).

    Arguments are those of :class:`RNN` without ``nonlinearity``, and:

    Args:
        proj_size: if positive, hidden states are projected to this size (Sak et al., 2014). Default: 0.

    The state is a pair of the hidden and the cell state; the gates in the weights' rows are input, forget, cell,
    output.

    Shape:
        - hx: :math:`(D * num\\_layers, N, H_{out})` and :math:`(D * num\\_layers, N, H_{cell})`

    Example::

        >>> output, (hn, cn) = nn.LSTM(10, 20, 2)(torch.randn(5, 3, 10))
        >>> output.shape, cn.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, input_size: int, hidden_size: int, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", input_size, hidden_size, *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size that the cell state has to have."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and the states of a call."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        expected = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], expected, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states in the order in which a packed sequence has its sequences."""
        return hx if permutation is None else tuple(_permuted(part, permutation) for part in hx)

    def _unbatched(self, hx: Any, batched: bool) -> Any:
        ndim = 3 if batched else 2
        h, c = hx
        if h.dim() != ndim or c.dim() != ndim:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {ndim}-D but got ({h.dim()}-D, {c.dim()}-D) tensors"
            )
        return (h, c) if batched else (h.unsqueeze(1), c.unsqueeze(1))

    def _initial(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        sizes = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        return tuple(torch.zeros(size, dtype=input.dtype, device=input.device) for size in sizes)

    def _run(self, input: Tensor, batch_sizes: Tensor | None, hx: Any) -> Any:
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            output, h, c = _VF.lstm(input, hx, *options, self.batch_first)
        else:
            output, h, c = _VF.lstm(input, batch_sizes, hx, *options)
        return output, (h, c)


class RNNCellBase(Module):
    """What the cells share: ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``, drawn as those of the layers."""

    __constants__ = ["input_size", "hidden_size", "bias"]
    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(torch.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(torch.empty((rows, hidden_size), device=device, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(torch.empty(rows, device=device, dtype=dtype))
            self.bias_hh = Parameter(torch.empty(rows, device=device, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _batched(self, name: str, tensor: Tensor) -> Tensor:
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {name} to be 1D or 2D, got {tensor.dim()}D instead")
        return tensor if tensor.dim() == 2 else tensor.unsqueeze(0)

    def _step(self, operator: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        rows = self._batched("input", input)
        if hx is None:
            state = torch.zeros(rows.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        else:
            state = self._batched("hidden", hx) if input.dim() == 1 or hx.dim() != 1 else hx
        result = operator(rows, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if input.dim() == 2 else result.squeeze(0)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            shown += f", nonlinearity={self.nonlinearity}"
        return shown


class RNNCell(RNNCellBase):
    """One step of an :class:`RNN`.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: whether there are biases. Default: ``True``.
        nonlinearity: ``"tanh"`` or ``"relu"``. Default: ``"tanh"``.
        device, dtype: of the parameters.

    Shape:
        - Input: :math:`(N, H_{in})` or :math:`(H_{in})`
        - hx: :math:`(N, H_{out})` or :math:`(H_{out})`, zeros if left out
        - Output: the next hidden state

    Example::

        >>> nn.RNNCell(10, 20)(torch.randn(3, 10)).shape
        torch.Size([3, 20])
    """

    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next hidden state."""
        operators = {"tanh": _VF.rnn_tanh_cell, "relu": _VF.rnn_relu_cell}
        if self.nonlinearity not in operators:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(operators[self.nonlinearity], input, hx)


class GRUCell(RNNCellBase):
    """One step of a :class:`GRU`; arguments and shapes are those of :class:`RNNCell` without ``nonlinearity``.

    Example::

        >>> nn.GRUCell(10, 20)(torch.randn(3, 10)).shape
        torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next hidden state."""
        return self._step(_VF.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of an :class:`LSTM`; its state is a pair of the hidden and the cell state.

    Example::

        >>> h, c = nn.LSTMCell(10, 20)(torch.randn(3, 10))
        >>> h.shape
        torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the next hidden state and the next cell state."""
        rows = self._batched("input", input)
        if hx is None:
            zeros = torch.zeros(rows.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        else:
            for index, state in enumerate(hx):
                self._batched(f"hx[{index}]", state)
            if input.dim() == 1:
                hx = (self._batched("hx[0]", hx[0]), self._batched("hx[1]", hx[1]))
        h, c = _VF.lstm_cell(rows, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))

"""Sequences of several lengths in one batch: padded, or packed without the padding."""

from __future__ import annotations

from typing import NamedTuple

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ptr import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _PackedFields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_PackedFields):
    """The elements of sequences of several lengths, time by time and without padding.

    Made by :func:`pack_padded_sequence` and :func:`pack_sequence`; every recurrent layer takes one, and returns one.

    Attributes:
        data: the elements, ``(sum of the lengths, *)``.
        batch_sizes: how many sequences reach each time, an int64 tensor on the CPU.
        sorted_indices: which sequence each of those in ``data`` was, or ``None`` if they came in order.
        unsorted_indices: the inverse of ``sorted_indices``.

    Example::

        >>> pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])]).data
        tensor([1, 4, 2, 3])
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            # A pair of both, as older code gives it.
            data, batch_sizes = data
        assert batch_sizes is not None
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data as :meth:`ptr.Tensor.to` does; the indices only move between devices."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        options = {name: value for name, value in kwargs.items() if name not in ("device", "dtype")}
        moved = [
            None if indices is None else indices.to(data.device, **options)
            for indices in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to the current accelerator."""
        return self.to(*args, device=kwargs.pop("device", "cuda"), **kwargs)

    def cpu(self) -> PackedSequence:
        """Move to the CPU."""
        return self.to("cpu")

    def double(self) -> PackedSequence:
        """Convert to ``float64``."""
        return self.to(dtype=torch.double)

    def float(self) -> PackedSequence:
        """Convert to ``float32``."""
        return self.to(dtype=torch.float)

    def half(self) -> PackedSequence:
        """Convert to ``float16``."""
        return self.to(dtype=torch.half)

    def long(self) -> PackedSequence:
        """Convert to ``int64``."""
        return self.to(dtype=torch.long)

    def int(self) -> PackedSequence:
        """Convert to ``int32``."""
        return self.to(dtype=torch.int)

    def short(self) -> PackedSequence:
        """Convert to ``int16``."""
        return self.to(dtype=torch.short)

    def char(self) -> PackedSequence:
        """Convert to ``int8``."""
        return self.to(dtype=torch.int8)

    def byte(self) -> PackedSequence:
        """Convert to ``uint8``."""
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on an accelerator of NVIDIA's."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()

    def pin_memory(self) -> PackedSequence:
        """Copy the data to pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes the given one; ``None`` stands for none."""
    if permutation is None:
        return None
    order = torch.arange(permutation.numel(), device=permutation.device)
    return torch.empty_like(permutation).scatter_(0, permutation, order)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences.

    Args:
        input: of shape ``(time, batch, *)``, or ``(batch, time, *)`` if ``batch_first``.
        lengths: of the sequences, a list or an int64 tensor on the CPU.
        batch_first: which shape ``input`` has.
        enforce_sorted: whether the sequences come with the longest first; otherwise they are sorted here.

    Raises:
        RuntimeError: the lengths do not fit the input, one is not positive, or they are not sorted but have to be.

    Example::

        >>> pack_padded_sequence(torch.tensor([[1, 4], [2, 0]]), [2, 1]).data
        tensor([1, 4, 2])
    """
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = torch.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = torch._C._VariableFunctions._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Undo :func:`pack_padded_sequence`.

    Args:
        sequence: what to pad.
        batch_first: whether the result is ``(batch, time, *)`` rather than ``(time, batch, *)``.
        padding_value: of the elements past a sequence's end.
        total_length: the length to pad to; the longest sequence's if ``None``.

    Returns:
        the padded sequences in their first order, and their lengths.

    Raises:
        ValueError: ``total_length`` is less than the longest sequence's length.
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    padded, lengths = torch._C._VariableFunctions._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length or longest
    )
    unsorted = sequence.unsorted_indices
    if unsorted is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, unsorted), lengths[unsorted.cpu()]


def pad_sequence(
    sequences: Tensor | list[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences of several lengths, with padding where one is over.

    Args:
        sequences: tensors that differ in their first size at most.
        batch_first: whether the result is ``(batch, time, *)`` rather than ``(time, batch, *)``.
        padding_value: of the elements that a sequence does not have.
        padding_side: ``"right"`` or ``"left"``.

    Example::

        >>> pad_sequence([torch.ones(2), torch.ones(1)], batch_first=True)
        tensor([[1., 1.],
                [1., 0.]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"padding_side should be one of 'left' or 'right', but got {padding_side}")
    if isinstance(sequences, torch.Tensor):
        sequences = list(sequences.unbind(0))
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    else:
        sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(sequence.size(0) for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        if missing:
            padding = sequence.new_full((missing, *sequence.shape[1:]), padding_value)
            sequence = torch.cat((sequence, padding) if padding_side == "right" else (padding, sequence))
        padded.append(sequence)
    return torch.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Undo :func:`pad_sequence`: the sequences without what is past their ``lengths``."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[: int(length)] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of several lengths; see :func:`pack_padded_sequence` for ``enforce_sorted``."""
    sequences = list(sequences)
    lengths = torch.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo :func:`pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)

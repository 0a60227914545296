"""Data sets, samplers, collation and the loader; orders are PyTorch's for a seed."""

from collections import OrderedDict, namedtuple

import ptr as torch
import pytest
from ptr.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    default_collate,
    default_convert,
    random_split,
)

Point = namedtuple("Point", "x y")


def numbers(n=10):
    return TensorDataset(torch.arange(n))


def batches(loader):
    return [batch[0].tolist() for batch in loader]


class Stream(IterableDataset):
    def __init__(self, n=7):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def test_shuffles_are_pytorchs():
    torch.manual_seed(0)
    loader = DataLoader(numbers(), batch_size=4, shuffle=True)
    assert batches(loader) == [[6, 7, 1, 4], [2, 0, 9, 8], [3, 5]]
    assert batches(loader) == [[2, 4, 7, 0], [8, 9, 5, 3], [6, 1]]
    assert torch.rand(1).item() == 0.455627977848053


def test_shuffles_by_a_generator_are_pytorchs():
    loader = DataLoader(numbers(), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(1))
    assert batches(loader) == [[4, 6, 9, 2], [3, 1, 0, 7], [8, 5]]
    assert batches(loader) == [[6, 8, 5, 1], [3, 7, 2, 4], [0, 9]]


def test_samplers_are_pytorchs():
    torch.manual_seed(3)
    assert list(RandomSampler(range(5), True, 40))[:12] == [2, 3, 0, 1, 3, 1, 2, 2, 3, 4, 3, 1]
    assert list(RandomSampler(range(4), num_samples=7)) == [2, 0, 1, 3, 1, 2, 0]
    assert list(SubsetRandomSampler([5, 6, 7, 8])) == [5, 6, 7, 8]
    assert [s.indices for s in random_split(numbers(), [0.35, 0.35, 0.3])] == [[5, 8, 0, 9], [7, 2, 4], [6, 3, 1]]


def test_order_batches_and_lengths():
    ds = numbers(7)
    assert batches(DataLoader(ds, 3)) == [[0, 1, 2], [3, 4, 5], [6]] and len(DataLoader(ds, 3)) == 3
    assert batches(DataLoader(ds, 3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert len(DataLoader(ds, 3, drop_last=True)) == 2
    assert batches(DataLoader(ds, 2, sampler=[3, -1, 2])) == [[3, 6], [2]]
    assert batches(DataLoader(ds, batch_sampler=[[1, 2], [0]])) == [[1, 2], [0]]
    assert batches(DataLoader(ds, batch_size=None)) == list(range(7))
    assert list(DataLoader([1, 2, 3], 2, collate_fn=tuple)) == [(1, 2), (3,)]


def test_rows_of_tensors_match_samples():
    tensors = torch.arange(20.0).reshape(10, 2), torch.arange(20.0).reshape(2, 10).t()
    for tensor in tensors:
        ((batch,),) = DataLoader(TensorDataset(tensor), 3, sampler=[4, 0, -1])
        assert batch.tolist() == [tensor[4].tolist(), tensor[0].tolist(), tensor[-1].tolist()]
    with pytest.raises(IndexError):
        list(DataLoader(numbers(3), 2, sampler=[5]))


def test_streams():
    assert [b.tolist() for b in DataLoader(Stream(), 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [b.tolist() for b in DataLoader(Stream(), 3, drop_last=True)] == [[0, 1, 2], [3, 4, 5]]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert len(DataLoader(Stream(), 3)) == 3 and list(Stream(2) + Stream(2)) == [0, 1, 0, 1]
    short = Stream(2)
    loader = DataLoader(short, batch_size=None)
    assert len(loader) == 2
    short.n = 3
    with pytest.warns(UserWarning, match="was reported to be 2"):
        list(loader)
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([[1]]))


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, ValueError, "multi-process loading"),
        ({"sampler": [1], "shuffle": True}, ValueError, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, ValueError, "mutually exclusive with drop_last"),
        ({"batch_size": 0}, ValueError, "positive integer value"),
    ],
)
def test_loader_misuse(kwargs, error, match):
    with pytest.raises(error, match=match):
        DataLoader([1, 2, 3], **kwargs)


def test_more_loader_misuse():
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        DataLoader(Stream(), shuffle=True)
    loader = DataLoader([1])
    with pytest.raises(ValueError, match="should not be set after DataLoader is initialized"):
        loader.batch_size = 3
    with pytest.raises(AssertionError, match="timeout == 0"):
        iter(DataLoader([1], timeout=1))
    with pytest.warns(UserWarning, match="no accelerator is found"):
        list(DataLoader([1], pin_memory=True))


@pytest.mark.parametrize(
    "call",
    [
        lambda: RandomSampler([]),
        lambda: RandomSampler([1], num_samples=0),
        lambda: BatchSampler([1], 0, False),
        lambda: BatchSampler([1], True, False),
        lambda: BatchSampler([1], 1, 3),
    ],
)
def test_sampler_misuse(call):
    with pytest.raises(ValueError):
        call()


def test_batch_sampler():
    assert list(BatchSampler(SequentialSampler(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(BatchSampler(range(5), 2, False)) == 3 and len(BatchSampler(range(5), 2, True)) == 2


def test_datasets():
    both = numbers(3) + numbers(4)
    assert [both[i][0].item() for i in (0, 2, 3, -1)] == [0, 2, 0, 3] and both.cumulative_sizes == [3, 7]
    with pytest.raises(ValueError, match="should not exceed dataset length"):
        both[-9]
    with pytest.raises(AssertionError, match="empty"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="Size mismatch"):
        TensorDataset(torch.ones(2), torch.ones(3))

    assert StackDataset([1, 2], [3, 4])[1] == (2, 4) and StackDataset(a=[1, 2])[0] == {"a": 1}
    assert StackDataset(a=Subset([5, 6, 7], [2, 0]), b=[1, 2]).__getitems__([1, 0]) == [
        {"a": 5, "b": 2},
        {"a": 7, "b": 1},
    ]
    for args, kwargs in (((), {}), (([1], [1, 2]), {}), (([1],), {"a": [1]})):
        with pytest.raises(ValueError):
            StackDataset(*args, **kwargs)

    class Half(Subset):
        def __getitem__(self, index):
            return 0

    with pytest.raises(NotImplementedError, match="must also override __getitems__"):
        Half([1], [0])
    with pytest.raises(NotImplementedError):
        Dataset()[0]


def test_random_split_lengths():
    assert [len(s) for s in random_split(range(10), [3, 7])] == [3, 7]
    assert sorted(i for s in random_split(range(10), [0.5, 0.5]) for i in s.indices) == list(range(10))
    with pytest.raises(ValueError, match="does not equal the length"):
        random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="is not between 0 and 1"):
        random_split(range(10), [1.5, -0.5])


def test_default_collate():
    ints, floats = default_collate([(1, 2.0), (3, 4.0)])
    assert ints.tolist() == [1, 3] and ints.dtype == torch.int64 and floats.dtype == torch.float64
    assert default_collate(["a", "b"]) == ["a", "b"]
    out = default_collate([OrderedDict(a=1, b=torch.ones(2)), OrderedDict(a=2, b=torch.zeros(2))])
    assert type(out) is OrderedDict and out["b"].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert type(point) is Point and point.y.tolist() == [2, 4]
    for wrong, error in (([None], TypeError), ([[1], [1, 2]], RuntimeError)):
        with pytest.raises(error):
            default_collate(wrong)


def test_numpy_samples():
    np = pytest.importorskip("numpy")
    assert default_collate([np.arange(2), np.arange(2)]).tolist() == [[0, 1], [0, 1]]
    assert default_collate([np.float32(1), np.float32(2)]).dtype == torch.float32
    assert default_convert([np.arange(2), "a"])[0].tolist() == [0, 1]
    with pytest.raises(TypeError, match="default_collate"):
        default_collate([np.array(["a"])])


def test_distributed_sampler_is_pytorchs():
    data = range(7)
    parts = [list(DistributedSampler(data, num_replicas=3, rank=rank, shuffle=False)) for rank in range(3)]
    assert parts == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    parts = [DistributedSampler(data, num_replicas=3, rank=rank, shuffle=False, drop_last=True) for rank in range(3)]
    assert [list(part) for part in parts] == [[0, 3], [1, 4], [2, 5]] and len(parts[0]) == 2
    shuffled = DistributedSampler(data, num_replicas=2, rank=1, seed=3)
    assert list(shuffled) == [3, 6, 2, 5] and len(shuffled) == 4
    shuffled.set_epoch(2)
    assert list(shuffled) == [0, 2, 5, 1]
    # Fewer items than processes.
    assert [list(DistributedSampler([5], 3, rank, shuffle=False)) for rank in range(3)] == [[0], [0], [0]]
    with pytest.raises(ValueError, match=r"Invalid rank 2, rank should be in the interval \[0, 1\]"):
        DistributedSampler(data, num_replicas=2, rank=2)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedSampler(data)


def test_older_names():
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert ConcatDataset([numbers(2), numbers(3)]).cummulative_sizes == [2, 5]

"""`UntypedStorage` as a sequence of bytes: keys, values and errors."""

import ptr
import pytest


def storage():
    return ptr.UntypedStorage([1, 2, 3, 4])


def test_slices_share_the_bytes():
    whole = storage()
    part = whole[1:3]
    part.fill_(9)
    assert whole.tolist() == [1, 9, 9, 4]
    whole.resize_(0)
    assert part.tolist() == [9, 9]
    assert storage()[-2:].tolist() == [3, 4]
    assert storage()[3:1].tolist() == []
    with pytest.raises(RuntimeError, match="not resizable"):
        part.resize_(1)


def test_assignment():
    s = storage()
    s[0] = 7
    s[1:3] = 300
    s[3] = -1
    assert s.tolist() == [7, 44, 44, 255]
    assert storage().fill_(256).tolist() == [0] * 4
    assert ptr.UntypedStorage([-1, 257]).tolist() == [255, 1]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (IndexError, lambda: storage()[4]),
        (IndexError, lambda: storage()[-5]),
        (TypeError, lambda: storage()["a"]),
        (TypeError, lambda: storage()[True]),
        (TypeError, lambda: storage()[1.0]),
        (ValueError, lambda: storage()[2**70]),
        (RuntimeError, lambda: storage()[::2]),
        (RuntimeError, lambda: storage().__setitem__(4, 1)),
        (RuntimeError, lambda: storage().__setitem__(-1, 1)),
        (RuntimeError, lambda: storage().__setitem__("a", 1)),
        (RuntimeError, lambda: storage().__setitem__(0, 1.5)),
        (RuntimeError, lambda: storage().__setitem__(slice(0, 2), "a")),
        (RuntimeError, lambda: storage().__setitem__(slice(0, 4, 2), 1)),
        (RuntimeError, lambda: storage().resize_(-1)),
        (RuntimeError, lambda: storage().resize_("a")),
        (ValueError, lambda: storage().resize_(2**70)),
        (RuntimeError, lambda: storage().fill_(1.5)),
        (RuntimeError, lambda: storage().fill_(None)),
        (RuntimeError, lambda: ptr.UntypedStorage(-1)),
        (RuntimeError, lambda: ptr.UntypedStorage(1.5)),
        (RuntimeError, lambda: ptr.UntypedStorage(None)),
        (RuntimeError, lambda: ptr.UntypedStorage("abc")),
        (RuntimeError, lambda: ptr.UntypedStorage([1, "a"])),
        (TypeError, lambda: ptr.UntypedStorage(1, 2)),
    ],
)
def test_errors(error, call):
    with pytest.raises(error):
        call()


def test_without_memory():
    s = ptr.UntypedStorage([1, 2], device="meta")
    assert s.fill_(3).nbytes() == 2
    assert s.clone().device.type == "meta"
    assert s.copy_(storage()).nbytes() == 2


def test_set_takes_all_elements_of_a_storage():
    assert ptr.empty(0, dtype=ptr.uint8).set_(storage()).tolist() == [1, 2, 3, 4]
    assert ptr.empty(0, dtype=ptr.int16).set_(storage()).tolist() == [0x0201, 0x0403]
    assert ptr.empty(0, dtype=ptr.int64).set_(storage()).tolist() == []


def test_a_bound_that_shrinks_the_storage():
    whole = ptr.UntypedStorage(1000)

    class Bound:
        def __index__(self):
            whole.resize_(10)
            return 0

    with pytest.raises(IndexError, match="out of bounds for a storage of 10 bytes"):
        whole[Bound() :]

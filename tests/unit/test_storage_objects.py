"""Storage objects: one per storage, for as long as anything holds the storage."""

import gc
import threading
import weakref

import ptr
import pytest


def test_a_storage_has_one_object():
    x = ptr.ones(3)
    assert x.untyped_storage() is x.untyped_storage() is x[1:].untyped_storage() is x.detach().untyped_storage()
    assert x.untyped_storage() is not x.clone().untyped_storage()
    assert x.untyped_storage()._untyped_storage is x.untyped_storage()


def test_attributes_stay_while_the_storage_lives():
    x = ptr.ones(3)
    x.untyped_storage().note = "kept"
    identity = id(x.untyped_storage())
    gc.collect()
    view = x[1:]
    del x
    assert view.untyped_storage().note == "kept" and id(view.untyped_storage()) == identity


def test_the_object_dies_with_the_storage():
    class Note:
        pass

    x = ptr.ones(3)
    x.untyped_storage().note = note = Note()
    dead = []
    storage, note = weakref.ref(x.untyped_storage(), dead.append), weakref.ref(note)
    assert storage() is x.untyped_storage()
    del x
    assert storage() is None and note() is None and len(dead) == 1


def test_the_storage_outlives_its_tensors_in_python():
    storage = ptr.arange(4, dtype=ptr.uint8).untyped_storage()
    gc.collect()
    assert storage.tolist() == [0, 1, 2, 3]
    again = ptr.empty(0, dtype=ptr.uint8).set_(storage, 0, (4,))
    assert again.untyped_storage() is storage
    del again
    assert storage.tolist() == [0, 1, 2, 3]


def test_a_storage_made_in_python_is_that_of_its_tensors():
    class Own(ptr.UntypedStorage):
        pass

    storage = Own([1, 2, 3])
    x = ptr.empty(0, dtype=ptr.uint8).set_(storage, 0, (3,))
    assert x.untyped_storage() is storage and storage.clone() is not storage
    del storage
    assert type(x.untyped_storage()) is Own and x.tolist() == [1, 2, 3]


def test_objects_made_and_dropped_by_several_threads():
    tensors = [ptr.ones(2) for _ in range(50)]
    weight = ptr.ones(2, requires_grad=True)

    def work():
        for _ in range(20):
            for i, x in enumerate(tensors):
                assert x.untyped_storage() is x.view(2, 1).untyped_storage()
                # Another thread may be looking at the old one.
                tensors[i] = ptr.ones(2)
            product = weight * tensors[0]
            assert product.untyped_storage() is product.detach().untyped_storage()
            product.sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(x.untyped_storage().nbytes() == 8 for x in tensors)


def test_storages_over_files(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(range(8)))
    private = ptr.UntypedStorage.from_file(path, False, 8)
    private[0] = 9
    assert private.tolist()[:2] == [9, 1] and path.read_bytes()[0] == 0
    assert private.filename is None and not private.is_shared()
    shared = ptr.UntypedStorage.from_file(str(path), True, 10)
    shared[9] = 7
    assert path.read_bytes() == bytes([*range(8), 0, 7])
    assert shared.filename == str(path) and shared.is_shared()
    assert ptr.TypedStorage.from_file(path, False, 2, dtype=ptr.int16).tolist() == [256, 770]
    assert ptr.UntypedStorage.from_file(path).nbytes() == 0
    with pytest.raises(RuntimeError, match="size <10> is smaller than the required mapping size <11>"):
        ptr.UntypedStorage.from_file(path, False, 11)
    with pytest.raises(RuntimeError, match="unable to open file .* in read-only mode: No such file"):
        ptr.UntypedStorage.from_file(tmp_path / "none", False, 1)

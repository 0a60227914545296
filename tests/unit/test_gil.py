"""Large work lets other Python threads run."""

import threading
import time

import ptr
import pytest


@pytest.mark.parametrize(
    "work",
    [lambda: ptr.randn(40_000_000), lambda: ptr.randperm(10_000_000), lambda: ptr.ones(8000, 8000).tanh()],
    ids=["sizes", "count", "tensor"],
)
def test_large_work_releases_the_lock(work):
    count, done = 0, threading.Event()

    def spin():
        nonlocal count
        while not done.is_set():
            count += 1

    threads = ptr.get_num_threads()
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        ptr.set_num_threads(1)
        before, start = count, time.perf_counter()
        time.sleep(0.1)
        rate = (count - before) / (time.perf_counter() - start)
        before, start = count, time.perf_counter()
        work()
        elapsed, counted = time.perf_counter() - start, count - before
        # Whoever held the lock all the while would leave the other thread one interval of 5 ms at most.
        assert counted > rate * 0.015, f"{counted} in {elapsed} s at {rate} per second"
    finally:
        done.set()
        thread.join()
        ptr.set_num_threads(threads)

"""The limit on the time of a search."""

import threading
import time

from npformer.learn.exercises.time_limit import EVERY, TimeLimit


def asks(limit):
    return any(limit.is_over() for _ in range(EVERY))


def test_the_time_of_this_thread_counts():
    limit = TimeLimit(0.05)
    assert not asks(limit)
    end = time.thread_time() + 0.06
    while time.thread_time() < end:
        pass
    assert asks(limit)


def test_the_time_of_other_threads_does_not_count():
    limit, start = TimeLimit(0.2), time.process_time()
    ended = threading.Event()

    def compute():
        while not ended.is_set():
            pass

    other = threading.Thread(target=compute)
    other.start()
    while time.process_time() < start + 0.4:
        time.sleep(0.01)
    is_over = asks(limit)
    ended.set()
    other.join()
    assert not is_over

"""Signal handlers take no lock and say nothing on the thread that they interrupt."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from harness.interrupt import Interrupt


def test_the_message_never_comes_from_the_interrupted_thread():
    told, lock = [], threading.Lock()

    def tell(text):
        with lock:  # a display's lock, which the interrupted thread may hold
            told.append(threading.current_thread())

    before = signal.getsignal(signal.SIGINT)
    with Interrupt(30, tell) as interrupt:
        with lock:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            assert interrupt.requested
        time.sleep(0.2)
        assert len(told) == 1
        assert told[0] is not threading.main_thread()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert interrupt.exit_status == 130


def test_the_grace_time_ends_in_the_main_thread():
    with Interrupt(0.1, lambda text: None):
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)


def test_elsewhere_it_listens_to_nothing():
    before, seen = signal.getsignal(signal.SIGINT), []

    def enter():
        with Interrupt(1, lambda text: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [before]

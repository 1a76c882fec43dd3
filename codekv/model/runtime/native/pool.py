"""Threads that work off a program of operations together.

A helping thread lives in native code: it sleeps in a semaphore of the operating system
and never needs Python's lock, so a busy Python thread does not delay a step.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from codekv.model.runtime.native import program as words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from codekv.model.runtime.native.compiler import Code

_SLEEP_US = 50
"""A waiting thread sleeps so long at a time once it has spun in vain."""

_SEMAPHORE_BYTES = 64
"""Room for the system's semaphore; glibc's takes 32 bytes."""


class Pool:
    """One thread that calls and others that help; used by one caller at a time."""

    def __init__(self, code: Code, num_threads: int, scratch_bytes: int) -> None:
        """Start the helping threads.

        Args:
            code: Has `work` and `serve`.
            num_threads: With the caller.
            scratch_bytes: Memory of its own for each thread.
        """
        self.num_threads = num_threads
        self._code = code
        self._state = aligned(8 * words.STATE_WORDS).view(np.int64)
        self._state[:] = 0
        size = -(-scratch_bytes // 4096) * 4096
        self._scratch = aligned(size * num_threads).reshape(num_threads, size)
        self._counters = aligned(0)
        self._system = _System()
        self._state[words.SLEEP] = self._system.sleep
        self._state[words.SLEEP_ARGUMENT] = self._system.sleep_argument
        self._state[words.WAIT] = self._system.wait
        self._state[words.WAIT_ARGUMENT] = self._system.wait_argument
        pointer, number = ctypes.c_void_p, ctypes.c_void_p
        self._work = ctypes.CFUNCTYPE(None, pointer, number)(code.addresses["work"])
        serve = ctypes.CFUNCTYPE(None, pointer, pointer, pointer)(
            code.addresses["serve"]
        )
        self._semaphores = [self._system.semaphore() for _ in range(num_threads - 1)]
        state = self._state.ctypes.data
        for index, semaphore in enumerate(self._semaphores):
            scratch = self._scratch[index + 1].ctypes.data
            threading.Thread(
                target=serve,
                args=(state, semaphore, scratch),
                name=f"codekv-native-{index + 1}",
                daemon=True,
            ).start()

    def run(self, program: NDArray[np.int64], first: int, last: int) -> None:
        """Work off operations [first, last) and wait until they are done.

        Args:
            program: One row of `WORDS` words per operation; its last is empty and
                waits for those before it.
            first: The first operation.
            last: One past the last.
        """
        state, system = self._state, self._system
        size = len(program) * words.COUNTERS
        if self._counters.nbytes < 8 * size:
            self._counters = aligned(8 * size).view(np.int64)
        counters = self._counters.view(np.int64)
        counters[first * words.COUNTERS : last * words.COUNTERS] = 0
        state[words.PROGRAM] = program.ctypes.data
        state[words.COUNTER_TABLE] = counters.ctypes.data
        state[words.FROM], state[words.TO] = first, last
        state[words.CANCEL] = 0
        state[words.OPEN] = 1
        for semaphore in self._semaphores:
            system.post(semaphore)
        self._work(state.ctypes.data, self._scratch[0].ctypes.data)
        state[words.OPEN] = 0
        while state[words.INSIDE]:
            pass  # A helper leaves within microseconds: nothing is left to take.

    def cancel(self) -> None:
        """End the running program soon; what it was to write is undefined then."""
        self._state[words.CANCEL] = 1

    def close(self) -> None:
        """End the helping threads."""
        self._state[words.QUIT] = 1
        for semaphore in self._semaphores:
            self._system.post(semaphore)
        self._semaphores = []


def aligned(size: int) -> NDArray[np.uint8]:
    """Zeroed bytes that begin at a page."""
    page = 4096
    raw = np.zeros(size + page, np.uint8)
    start = -raw.ctypes.data % page
    return raw[start : start + size]


class _System:
    """The operating system's sleep and semaphore, as addresses and as calls."""

    def __init__(self) -> None:
        if sys.platform == "win32":
            self._windows()
        elif sys.platform == "darwin":
            self._darwin()
        else:
            self._posix()

    def _posix(self) -> None:
        library = ctypes.CDLL(None)
        self.sleep, self.sleep_argument = _address(library.usleep), _SLEEP_US
        self.wait, self.wait_argument = _address(library.sem_wait), 0
        library.sem_post.argtypes = [ctypes.c_void_p]
        self._post: Any = library.sem_post
        self._keep: list[Any] = []

        def make() -> int:
            raw = ctypes.create_string_buffer(_SEMAPHORE_BYTES)
            self._keep.append(raw)
            place = ctypes.addressof(raw)
            library.sem_init(ctypes.c_void_p(place), 0, 0)
            return place

        self.semaphore = make

    def _darwin(self) -> None:
        library: Any = ctypes.CDLL(None)
        self.sleep, self.sleep_argument = _address(library.usleep), _SLEEP_US
        self.wait = _address(library.dispatch_semaphore_wait)
        self.wait_argument = -1  # DISPATCH_TIME_FOREVER
        library.dispatch_semaphore_signal.argtypes = [ctypes.c_void_p]
        library.dispatch_semaphore_create.argtypes = [ctypes.c_long]
        library.dispatch_semaphore_create.restype = ctypes.c_void_p
        self._post = library.dispatch_semaphore_signal
        self.semaphore = lambda: int(library.dispatch_semaphore_create(0))

    def _windows(self) -> None:
        library: Any = ctypes.CDLL("kernel32")
        # Milliseconds there: zero gives way to whoever is ready to run.
        self.sleep, self.sleep_argument = _address(library.Sleep), 0
        self.wait = _address(library.WaitForSingleObject)
        self.wait_argument = 0xFFFFFFFF  # INFINITE
        library.CreateSemaphoreW.restype = ctypes.c_void_p
        release: Any = library.ReleaseSemaphore
        release.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p]
        self._post = lambda handle: release(handle, 1, None)
        self.semaphore = lambda: int(library.CreateSemaphoreW(None, 0, 2**30, None))

    def post(self, semaphore: int) -> None:
        """Let one thread that waits go on."""
        self._post(semaphore)


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)

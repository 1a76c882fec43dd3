"""The one thread that owns torch: runs jobs step by step, newest request first.

A job is a generator. Each `yield` is a point where it may be set aside or dropped:
after one decoding step or one prefill chunk. Knows nothing of models or text.

Order: calls as they came, then the newest request, then older requests, then idle jobs
by rank, the newest first. An idle job is set aside whenever a request waits. Most idle
jobs begin only once requests have been absent for a moment, so that fast typing never
meets one; those made for the gaps between keystrokes run at once. Where no gap is left,
because every request is replaced before it is answered, they get as much time as the
requests that are in vain: richer answers a little later are worth more than none.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from codekv.errors import CancelledWorkError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from codekv.cooperative import Cooperative

log = logging.getLogger(__name__)

T = TypeVar("T")

MANY_IN_VAIN = 2
"""One replaced request is a quick key; two in a row are a machine that is too slow."""


@dataclass(eq=False)
class Job(Generic[T]):
    """One piece of work and its outcome.

    Attributes:
        topic: What it is about (a document); newer requests replace older ones of
            the same topic.
        future: Set once; cancelled work gets `CancelledWorkError`.
        rank: Of idle work; lower goes first.
        in_gaps: Idle work that also runs between two keystrokes.
        submitted: Clock time in seconds at which it was handed over.
        cpu_s: Processor seconds that the process spent while it ran.
    """

    steps: Cooperative[T]
    topic: Hashable
    idle: bool
    rank: int = 0
    in_gaps: bool = False
    future: Future[T] = field(default_factory=Future)
    cancelled: bool = False
    submitted: float = field(default_factory=time.perf_counter)
    cpu_s: float = 0.0

    def __post_init__(self) -> None:
        # A running future cannot be cancelled by its waiter: only the worker ends it.
        self.future.set_running_or_notify_cancel()

    def cancel(self) -> None:
        """Ask for the end of the work at its next step; safe from any thread."""
        self.cancelled = True


@dataclass(frozen=True, slots=True)
class Effort:
    """Processor seconds of this process by what they were spent on.

    Attributes:
        answers_s: Requests that were answered.
        dropped_s: Requests that newer ones replaced, and cancelled ones.
        idle_s: Idle work, dropped or not.
    """

    answers_s: float = 0.0
    dropped_s: float = 0.0
    idle_s: float = 0.0

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.answers_s + self.dropped_s + self.idle_s


class Worker:
    """Runs jobs on a thread of its own until closed."""

    def __init__(self, name: str = "codekv-engine", idle_delay: float = 0.05) -> None:
        """Start the thread.

        Args:
            name: The thread's.
            idle_delay: Seconds without a request before idle work begins.
        """
        self._idle_delay = idle_delay
        self._quiet_since = 0.0
        self._effort = Effort()
        # Requests replaced since the last one that was answered, and seconds that work
        # for the gaps may take before the next step of a request.
        self._num_in_vain = 0
        self._owed_s = 0.0
        self._calls: list[Job[Any]] = []
        self._requests: list[Job[Any]] = []
        self._idle: list[Job[Any]] = []
        self._wake = threading.Condition()
        self._closed = False
        self._running: Job[Any] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, topic: Hashable, steps: Cooperative[T]) -> Job[T]:
        """Queue a request; an unfinished request of the same topic is cancelled."""
        job = Job(steps, topic, idle=False)
        with self._wake:
            for old in self._requests:
                if old.topic == topic:
                    old.cancel()
            self._enqueue(job, self._requests)
        return job

    def submit_idle(
        self,
        topic: Hashable,
        steps: Cooperative[T],
        rank: int = 0,
        *,
        in_gaps: bool = False,
    ) -> Job[T]:
        """Queue idle work; unfinished idle work of the same topic is cancelled.

        Lower ranks go first; within a rank, what was handed over last. Work for the
        gaps between keystrokes must have steps of a few milliseconds.
        """
        job = Job(steps, topic, idle=True, rank=rank, in_gaps=in_gaps)
        with self._wake:
            for old in self._idle:
                if old.topic == topic:
                    old.cancel()
            self._enqueue(job, self._idle)
        return job

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Run a short function on the worker's thread, before everything else.

        Calls run in their order, so that a request sees what was called before it.
        """

        def steps() -> Cooperative[T]:
            yield
            return function()

        job = Job(steps(), topic="", idle=False)
        with self._wake:
            self._enqueue(job, self._calls)
        return job.future

    def cancel_idle(self, topics: Collection[Hashable] | None = None) -> None:
        """Drop idle jobs about these topics, or all of them."""
        with self._wake:
            for job in self._idle:
                if topics is None or job.topic in topics:
                    job.cancel()

    @property
    def effort(self) -> Effort:
        """What the work so far took."""
        return self._effort

    @property
    def is_busy(self) -> bool:
        """Whether a request is waiting or running; idle work does not count."""
        return bool(self._requests)

    @property
    def is_idle(self) -> bool:
        """Whether nothing at all is left to do."""
        return not (self._calls or self._requests or self._idle)

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Block until nothing is left to do; whether that came in time (seconds)."""
        with self._wake:
            return self._wake.wait_for(lambda: self.is_idle or self._closed, timeout)

    def close(self, timeout: float = 2.0) -> bool:
        """Drop all work and end the thread; whether it ended in time (seconds)."""
        with self._wake:
            self._closed = True
            for job in (*self._calls, *self._requests, *self._idle):
                job.cancel()
            self._wake.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _enqueue(self, job: Job[Any], queue: list[Job[Any]]) -> None:
        if self._closed:
            job.future.set_exception(CancelledWorkError("the engine is closed"))
            return
        queue.append(job)
        self._wake.notify_all()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            if self._step(job):
                with self._wake:
                    for queue in (self._calls, self._requests, self._idle):
                        if job in queue:
                            queue.remove(job)
                    if not job.idle:
                        self._quiet_since = time.perf_counter()
                    self._wake.notify_all()

    def _next(self) -> Job[Any] | None:
        """Wait for the job to advance; None when closed and nothing is left."""
        with self._wake:
            while True:
                for queue in (self._calls, self._requests, self._idle):
                    # Cancelled ones first: their waiters should hear of it at once.
                    for job in queue:
                        if job.cancelled:
                            return job
                if self._calls:
                    return self._calls[0]
                in_gaps = [job for job in self._idle if job.in_gaps]
                if self._requests and not (in_gaps and self._owed_s > 0.0):
                    return self._requests[-1]
                if self._closed:
                    return None
                wait = self._quiet_since + self._idle_delay - time.perf_counter()
                ready = self._idle if wait <= 0 and not self._requests else in_gaps
                if ready:
                    return min(ready, key=lambda job: (job.rank, -job.submitted))
                self._wake.wait(wait if self._idle else None)

    def _step(self, job: Job[Any]) -> bool:
        """Advance a job by one step; whether it is over."""
        started, began = time.perf_counter(), time.process_time()
        is_over = self._advance(job)
        spent = time.process_time() - began
        job.cpu_s += spent
        self._share_out(job, time.perf_counter() - started, is_over=is_over)
        effort = self._effort
        if job.idle:
            self._effort = replace(effort, idle_s=effort.idle_s + spent)
        elif is_over and job.cancelled:
            self._effort = replace(effort, dropped_s=effort.dropped_s + job.cpu_s)
        elif is_over:
            self._effort = replace(effort, answers_s=effort.answers_s + job.cpu_s)
        return is_over

    def _share_out(self, job: Job[Any], seconds: float, *, is_over: bool) -> None:
        """Note who had the thread; see the module's order of jobs."""
        if job.in_gaps:
            self._owed_s = max(self._owed_s - seconds, 0.0)
        elif not job.idle:
            if is_over and job.topic:
                self._num_in_vain = self._num_in_vain + 1 if job.cancelled else 0
            is_late = self._num_in_vain >= MANY_IN_VAIN
            self._owed_s = self._owed_s + seconds if is_late else 0.0

    def _advance(self, job: Job[Any]) -> bool:
        """Run a job up to its next yield; whether it is over."""
        if job.cancelled:
            try:
                job.steps.close()
            except Exception as error:  # noqa: BLE001 - as below
                log.warning("dropped work failed: %s", type(error).__name__)
            job.future.set_exception(CancelledWorkError("replaced by newer work"))
            return True
        try:
            next(job.steps)
        except StopIteration as stop:
            job.future.set_result(stop.value)
            return True
        except Exception as error:  # noqa: BLE001 - the thread must outlive any job
            if job.idle:
                log.warning("idle work failed: %s", type(error).__name__)
            job.future.set_exception(error)
            return True
        return False

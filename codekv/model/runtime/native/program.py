"""A step as a list of operations, and the native loop in which threads work it off.

An operation is a row of `WORDS` 8-byte words: the address of its function, the number
of its chunks, how many operations before it must be finished, then its own arguments.
Threads take chunks by an atomic counter. A thread that comes late finds finished
operations and catches up; one that never comes delays nobody, because nothing waits
for threads, only for chunks.

A waiting thread first spins, for at most about 50 µs, and then sleeps in turns. Between
programs threads wait in a semaphore of the operating system, without Python's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.model.runtime.native.ir import FunctionText

if TYPE_CHECKING:
    from codekv.model.runtime.native.target import KernelTarget

WORDS = 24
"""8-byte words of an operation."""

FUNCTION, CHUNKS, WAITS = range(3)

COUNTERS = 16
"""8-byte words per operation's pair of counters: two cache lines of their own."""

# The shared state of a pool, in 8-byte words.
(
    PROGRAM,
    COUNTER_TABLE,
    FROM,
    TO,
    CANCEL,
    OPEN,
    INSIDE,
    QUIT,
    SLEEP,
    SLEEP_ARGUMENT,
    WAIT,
    WAIT_ARGUMENT,
) = (8 * place for place in range(12))
"""The last six are set once; those between stand in cache lines of their own."""
# Twelve counters, each alone on a cache line of eight words.
STATE_WORDS = 12 * 8

SPINS = 600
"""Turns of a waiting loop before it sleeps; a pause is 40 to 140 cycles."""


def functions(target: KernelTarget) -> list[FunctionText]:
    """`work`: take part in a program; `serve`: wait for programs and take part."""
    return [_work(target), _serve()]


def _work(target: KernelTarget) -> FunctionText:
    f = FunctionText("work", ["ptr %s", "ptr %scratch"])
    f.do(f"%in = getelementptr i64, ptr %s, i64 {INSIDE}")
    f.do("%entered = atomicrmw add ptr %in, i64 1 seq_cst")
    f.do(f"%op = getelementptr i64, ptr %s, i64 {OPEN}")
    opened = f.let("load atomic i64, ptr %op seq_cst, align 8")
    is_open = f.let(f"icmp ne i64 {opened}, 0")
    with f.when(is_open):
        _run(f, target)
    f.do("%left = atomicrmw sub ptr %in, i64 1 seq_cst")
    return f


def _run(f: FunctionText, target: KernelTarget) -> None:
    program, counters = f.slot("%s", PROGRAM, "ptr"), f.slot("%s", COUNTER_TABLE, "ptr")
    first, last = f.slot("%s", FROM), f.slot("%s", TO)
    cancel = f.at("%s", str(CANCEL), "i64")
    with f.loop(first, last) as loop:
        row = f.at(program, f.let(f"mul i64 {loop.index}, {WORDS}"), "i64")
        own = f.at(counters, f.let(f"mul i64 {loop.index}, {COUNTERS}"), "i64")
        waits = f.slot(row, WAITS)
        begin = f.let(f"sub i64 {loop.index}, {waits}")
        with f.loop(begin, loop.index) as before:
            earlier = f.at(program, f.let(f"mul i64 {before.index}, {WORDS}"), "i64")
            total = f.slot(earlier, CHUNKS)
            counter = f.at(
                counters, f.let(f"mul i64 {before.index}, {COUNTERS}"), "i64"
            )
            _wait(f, target, f.at(counter, str(COUNTERS // 2), "i64"), total, cancel)
        stopped = f.let(f"load atomic i64, ptr {cancel} monotonic, align 8")
        goes_on = f.let(f"icmp eq i64 {stopped}, 0")
        with f.when(goes_on):
            _take(f, row, own)


def _wait(
    f: FunctionText, target: KernelTarget, counter: str, total: str, cancel: str
) -> None:
    """Spin, then sleep in turns, until the counter has reached the total."""
    name = f"w{counter[1:]}"
    f.do(f"br label %{name}.start")
    f.label(f"{name}.start")
    f.do(f"br label %{name}.look")
    f.label(f"{name}.look")
    f.do(f"%{name}.n = phi i64 [0, %{name}.start], [%{name}.m, %{name}.again]")
    done = f.let(f"load atomic i64, ptr {counter} acquire, align 8")
    stopped = f.let(f"load atomic i64, ptr {cancel} monotonic, align 8")
    reached = f.let(f"icmp uge i64 {done}, {total}")
    cancelled = f.let(f"icmp ne i64 {stopped}, 0")
    ends = f.let(f"or i1 {reached}, {cancelled}")
    f.do(f"br i1 {ends}, label %{name}.done, label %{name}.not")
    f.label(f"{name}.not")
    if target.pause:
        f.do(target.pause)
    f.do(f"%{name}.m = add i64 %{name}.n, 1")
    tired = f.let(f"icmp ugt i64 %{name}.m, {SPINS}")
    f.do(f"br i1 {tired}, label %{name}.sleep, label %{name}.again")
    f.label(f"{name}.sleep")
    sleep = f.slot("%s", SLEEP, "ptr")
    argument = f.let(f"trunc i64 {f.slot('%s', SLEEP_ARGUMENT)} to i32")
    f.do(f"call void {sleep}(i32 {argument})")
    f.do(f"br label %{name}.again")
    f.label(f"{name}.again")
    f.do(f"br label %{name}.look")
    f.label(f"{name}.done")


def _take(f: FunctionText, row: str, own: str) -> None:
    """Take chunks of one operation until there are none."""
    name = f"t{own[1:]}"
    function, chunks = f.slot(row, FUNCTION, "ptr"), f.slot(row, CHUNKS)
    done = f.at(own, str(COUNTERS // 2), "i64")
    f.do(f"br label %{name}.next")
    f.label(f"{name}.next")
    f.do(f"%{name}.c = atomicrmw add ptr {own}, i64 1 monotonic")
    f.do(f"%{name}.some = icmp ult i64 %{name}.c, {chunks}")
    f.do(f"br i1 %{name}.some, label %{name}.do, label %{name}.done")
    f.label(f"{name}.do")
    f.do(f"call void {function}(ptr {row}, i64 %{name}.c, ptr %scratch)")
    f.do(f"%{name}.d = atomicrmw add ptr {done}, i64 1 release")
    f.do(f"br label %{name}.next")
    f.label(f"{name}.done")


def _serve() -> FunctionText:
    """The life of a helping thread: wait, work, until told to quit."""
    f = FunctionText("serve", ["ptr %s", "ptr %semaphore", "ptr %scratch"])
    f.do("br label %wait")
    f.label("wait")
    wait, argument = f.slot("%s", WAIT, "ptr"), f.slot("%s", WAIT_ARGUMENT)
    # The semaphore's own function may take fewer arguments; the rest is ignored.
    f.do(f"%r = call i32 {wait}(ptr %semaphore, i64 {argument})")
    place = f.at("%s", str(QUIT), "i64")
    quits = f.let(f"load atomic i64, ptr {place} acquire, align 8")
    ends = f.let(f"icmp ne i64 {quits}, 0")
    f.do(f"br i1 {ends}, label %end, label %help")
    f.label("help")
    f.do("call void @work(ptr %s, ptr %scratch)")
    f.do("br label %wait")
    f.label("end")
    return f

import subprocess
import sys

import pytest

# Page faults are counted, not timed: the system knows them exactly. A thread of its
# own, because that is where the engine allocates.
CODE = """
import resource, sys, threading
import torch
from codekv.storage.malloc_tuning import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()
    assert keep_freed_memory()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work():
    for repeat in range(12):
        tensors = [torch.zeros(2, 256, 64) for _ in range(48)]
        del tensors
        if repeat == 1:
            before = faults()
    print(faults() - before)

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def faults(mode: str) -> int:
    command = [sys.executable, "-c", CODE, mode]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has these options")
def test_tensors_made_again_cost_no_page_faults():
    assert faults("keep") < faults("plain") / 10

"""Run one command and print what it and all below it cost as JSON: `python benchmarks/launch.py COMMAND...`.

A process of its own, and a small one: the greatest resident memory a system reports of a command includes that of who
started it.
"""

import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys
import time

_SUBREAPER = (
    36  # PR_SET_CHILD_SUBREAPER: what the command leaves behind, as pyspark its JVM, becomes a child of this process
)


def main() -> int:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    start = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    all_of_them = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1024 if sys.platform == "linux" else 1  # ru_maxrss counts KiB on Linux, bytes on macOS
    cost = {"wall": wall, "cpu": all_of_them.ru_utime + all_of_them.ru_stime, "memory": usage.ru_maxrss * unit / 1e6}
    print(json.dumps(cost))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())

"""Run one command and print what it cost as JSON: `python benchmarks/launch.py COMMAND...`.

A process of its own, and a small one: the greatest resident memory a system reports of a command includes that of who
started it. Processes that the command does not wait for, as pyspark its JVM, are not counted: `process_tree.cost_of` has them.
"""

import json
import os
import subprocess
import sys
import time


def main() -> int:
    start = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1024 if sys.platform == "linux" else 1  # ru_maxrss counts KiB on Linux, bytes on macOS
    cost = {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss * unit / 1e6}
    print(json.dumps(cost))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())

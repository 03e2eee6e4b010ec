"""`python -m delayed_daemon`: pyspark's daemon, each task of which begins TASK_DELAY_SECONDS late; imports nothing of kaudit."""

import os
import time

from pyspark import daemon

begin_task = daemon.worker


def begin_late(*connection):
    time.sleep(float(os.environ.get("TASK_DELAY_SECONDS", "0")))
    return begin_task(*connection)


if __name__ == "__main__":
    daemon.worker = begin_late
    daemon.manager()

"""What the Python programs share: layouts of logging, and one case after the other."""

import json
import logging
import sys


def _formatter(layout):
    if layout == "json":
        from pythonjsonlogger.json import JsonFormatter

        return JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    formats = {
        "basic": logging.BASIC_FORMAT,
        "asctime": "%(asctime)s %(levelname)s %(name)s %(message)s",
        "dashes": "%(asctime)s - %(name)s - %(levelname)s - %(message)s",
        "stderr": "%(message)s",
    }
    return logging.Formatter(formats[layout])


def main(play):
    """Play the cases of the last argument, JSON, with the layout of the first."""
    layout, level, topic, cases = sys.argv[1:]
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_formatter(layout))
    logging.basicConfig(level=level, handlers=[handler])
    for chatty in ("kafka.net", "kafka.cluster"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    for case in json.loads(cases):
        play(logging.getLogger("orders"), case["port"], case["transactional"], topic)
        sys.stdout.flush()
        sys.stderr.flush()

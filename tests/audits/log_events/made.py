"""Events and batches as the placing of events needs them."""

from kaudit.audits.log_events.placement import LoggedBatch
from kaudit.model.application_logs import LogEvent, LogEventKind


def event(kind=LogEventKind.OUT_OF_ORDER_SEQUENCE, line=1, path="b1/server.log", **fields):
    return LogEvent(event=kind, origin="server", path=path, line=line, pattern="made", text="", **fields)


def batch(base, last, timestamp, producer_id=7, epoch=0, last_sequence=None, leader_epoch=0):
    sequence = last if last_sequence is None else last_sequence
    return LoggedBatch(base, last, timestamp, producer_id, epoch, sequence, leader_epoch)

"""What a text of a log leaves out, and so cannot be checked."""

from enum import Enum


class CoverageGap(Enum):
    """Each value is the sentence a report says of it."""

    RECORDS = (
        "text of kafka-dump-log: CRCs are as the tool found them, not computed again; records and side files are not "
        "there to be checked"
    )
    MARKERS = (
        "the text does not say which markers commit and which abort, nor their coordinator epochs: outcomes, epochs "
        "raised by aborts (KA203) and KA205 are not checked (a dump with --print-data-log has them)"
    )
    COUNTS = (
        "the text counts no records of a batch (kafka-dump-log before 2.0): whether missing offsets were compacted away "
        "is not known, they are not reported"
    )
    BATCHES = (
        "the text shows records, not batches (a deep dump of a release before 2.0): batches are put together from them, "
        "CRCs and sizes are not known, so an exact duplicate cannot be distinguished from a restart at the same sequence"
    )

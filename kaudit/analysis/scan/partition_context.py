"""What a check may look at of one partition replica: its own context, within that of the whole scan."""

from msgspec.structs import replace

from kaudit.checks.context import Context
from kaudit.source.layout import PartitionDirectory


def partition_context(
    scan_wide: Context, directory: PartitionDirectory, *, log_end_offset: int | None, compacted: bool = False
) -> Context:
    """Return the context of one partition replica; versions, coordinator and clock are those of the scan."""
    texts = sorted({segment.path for segment in directory.segments if segment.text is not None})
    return replace(
        scan_wide,
        **{
            name: getattr(directory, name)
            for name in ("topic", "partition", "replica", "log_dir", "directory", "relative")
        },
        segments=[segment.name for segment in directory.segments],
        segment_sizes=[] if texts else [segment.size for segment in directory.segments],
        compacted=compacted,
        log_end_offset=log_end_offset,
        texts=texts,
    )

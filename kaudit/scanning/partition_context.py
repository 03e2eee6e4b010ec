"""What a check may look at of one partition replica: its own context, within that of the whole scan."""

from msgspec.structs import replace

from kaudit.checks.command_line import CommandLine
from kaudit.checks.context import Context
from kaudit.source.layout import PartitionDirectory


def partition_context(
    scan_wide: Context,
    directory: PartitionDirectory,
    *,
    log_end_offset: int | None,
    compacted: bool = False,
    asked: CommandLine | None = None,
) -> Context:
    """Return the context of one partition replica; versions, coordinator and clock are those of the scan."""
    texts = any(segment.text is not None for segment in directory.segments)
    return replace(
        scan_wide,
        **{
            name: getattr(directory, name)
            for name in ("topic", "partition", "replica", "log_dir", "directory", "relative")
        },
        segments=[segment.name for segment in directory.segments],
        segment_sizes=[] if texts or directory.is_fetched else [segment.size for segment in directory.segments],
        compacted=compacted,
        asked=asked or scan_wide.asked,
        log_end_offset=log_end_offset,
        paths=[segment.path for segment in directory.segments],
        side_files=[file.name for file in directory.side_files],
        lone_files=[] if directory.whole_directory else sorted({segment.path for segment in directory.segments}),
        texts=texts,
        fetched=directory.segments[0].fetched if directory.is_fetched else None,
    )

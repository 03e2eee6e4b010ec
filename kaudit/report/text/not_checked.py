"""The last sections of reports for people: what was not checked and why, the digests, and which brokers' rules were applied.

The verdict as reports for people begin with it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kaudit.model.audit_clock import AuditClock, ClockSource
from kaudit.model.digests import Digests, PartitionDigest
from kaudit.model.grouping import grouped
from kaudit.model.result import AppliedConfiguration, BaselineComparison, BrokerVersions, NotAudited, ScanResult
from kaudit.report.console import Console, Style, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.coverage import coverage_section
from kaudit.report.text.formatting import SEVERITY_STYLE, counts_text, duration, plural, span, timestamp_text
from kaudit.report.text.log_events import log_section
from kaudit.results.scope import coverage_sentence, extent
from kaudit.results.verdict import COMMAND, verdict_of


def verdict_section(result: ScanResult, console: Console) -> list[str]:
    """Return the lines of the verdict, the first in the colour of the worst finding."""
    verdict = verdict_of(result)
    style = Style.GOOD if verdict.severity is None else SEVERITY_STYLE[verdict.severity]
    first, *others = map(visible, verdict.lines)
    lines = [console.paint(line, style) for line in console.wrap(first, indent="  ")]
    for text in others:
        if text.startswith(COMMAND):  # never wrapped, so that it can be copied
            lines.append(COMMAND + console.paint(text.removeprefix(COMMAND), Style.COMMAND))
        else:
            lines += console.wrap(text, indent="  ")
    return lines


_PATHS_SHOWN = 3


def closing_sections(result: ScanResult, options: RenderOptions) -> list[list[str]]:
    """Return the last sections: log events, what was not checked, and which brokers' rules were applied."""
    console = options.console
    rules = _broker_rules(result.broker_version, console, with_reasons=options.verbose)
    if options.verbose and result.clock is not None:
        rules += console.wrap(f"Time of the log: {clock_text(result.clock)}", indent="  ")
    return [
        log_section(result.log_events, console, each=options.verbose),
        *unchecked_sections(result, console),
        _configuration(result.configuration, console, all_of_it=options.verbose),
        _coverage(result, console, each=options.verbose),
        rules,
    ]


def _coverage(result: ScanResult, console: Console, *, each: bool) -> list[str]:
    """Return what became of the offsets; where nothing is wrong the verdict says it."""
    return coverage_section(result, console, each=each) if each or verdict_of(result).severity else []


def closing_line(result: ScanResult, *, notes_hidden: bool, seconds: float | None) -> str:
    """Return the line that ends a run on stderr."""
    parts = [counts_text(result, notes_hidden=notes_hidden), extent(result)]
    text = " ".join(parts) + (f", {duration(seconds)}" if seconds is not None else "")
    ends = [coverage_sentence(result), "incomplete" if result.incomplete else ""]
    return "; ".join([text, *filter(None, ends)])


def _configuration(configuration: AppliedConfiguration | None, console: Console, *, all_of_it: bool) -> list[str]:
    """Return what was configured: where it changed the verdict, and otherwise if asked for."""
    if configuration is None:
        return []
    lines = configuration_lines(configuration) if all_of_it else configuration_changes(configuration)
    return [line for text in lines for line in console.wrap(f"Configuration: {visible(text)}", indent="  ")]


def configuration_changes(configuration: AppliedConfiguration) -> list[str]:
    """Return a line for the configuration that changed findings or the exit code, and one for each file that was not used."""
    changed = [
        f"{plural(configuration.severities_changed, 'finding')} with another severity",
        f"{configuration.suppressed:,} suppressed",
        f"{configuration.left_out:,} left out",
    ]
    numbers = configuration.severities_changed, configuration.suppressed, configuration.left_out
    changes = [text for text, number in zip(changed, numbers, strict=True) if number]
    if configuration.fail_on is not None:
        changes.append(f"the exit code counts findings from {configuration.fail_on} on")
    lines = [f"{', '.join(configuration.sources)}: {', '.join(changes)}"] if changes else []
    return lines + [f"{file} lies in an input: it is evidence and was not used" for file in configuration.not_used]


def configuration_lines(configuration: AppliedConfiguration) -> list[str]:
    """Return the lines of `configuration_changes`, and one for a configuration that changed nothing."""
    lines = configuration_changes(configuration)
    if configuration.sources and len(lines) == len(configuration.not_used):
        lines.insert(0, f"{', '.join(configuration.sources)}: no finding changed")
    return lines


def unchecked_sections(result: ScanResult, console: Console) -> list[list[str]]:
    """Return the sections about what was not checked."""
    unreadable = [item for item in result.not_audited if item.unreadable]
    unchecked = [item for item in result.not_audited if not item.unreadable]
    return [
        _section("Could not be read:", unreadable, console, Style.ERROR),
        _section("Not checked:", unchecked, console, Style.STRONG),
        _baseline(result.baseline, console),
    ]


def text_of(sections: Iterable[Sequence[str]]) -> str:
    """Return the sections as text, empty ones left out, a blank line between."""
    return "".join(text_pieces(sections))


def text_pieces(sections: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the text of a section at a time."""
    before = ""
    for section in filter(None, sections):
        yield before + "\n".join(section) + "\n"
        before = "\n"


def _section(title: str, items: Iterable[NotAudited], console: Console, style: Style) -> list[str]:
    """Group by reason, so that many paths with one reason take two lines."""
    by_reason = grouped((item.reason, item.path) for item in items)
    if not by_reason:
        return []
    lines = [console.paint(title, style)]
    for reason, paths in by_reason.items():
        lines += console.wrap(f"{_paths(paths)}: {visible(reason)}", lead="  - ")
    return lines


def _paths(paths: Sequence[str]) -> str:
    """Return the first paths, each once: replicas of a partition share its name."""
    copies = Counter(paths)
    named = [visible(path) + (f" ({number} copies)" if number > 1 else "") for path, number in copies.items()]
    shown = ", ".join(named[:_PATHS_SHOWN])
    more = len(named) - _PATHS_SHOWN
    return f"{shown} and {more:,} more (json lists all)" if more > 0 else shown


def _baseline(compared: BaselineComparison | None, console: Console) -> list[str]:
    """Report on the baseline: entries found again, stale ones, those out of this scan's scope, and expired ones."""
    if compared is None:
        return []
    text = f"Baseline {visible(compared.file)}: {compared.known:,} known"
    if compared.out_of_scope:
        text += f", {len(compared.out_of_scope):,} not seen because out of scope"
    lines = console.wrap(text)
    for label, entries in (
        ("stale, no longer found", compared.stale),
        ("expired, counted as new again", compared.expired),
    ):
        for entry in entries[:_PATHS_SHOWN]:
            lines += console.wrap(f"{visible(entry.fingerprint)} {label}: {visible(entry.summary)}", lead="  - ")
        if len(entries) > _PATHS_SHOWN:
            lines.append(f"  - {len(entries) - _PATHS_SHOWN:,} more {label.split(',')[0]} (json lists all)")
    if compared.stale:
        lines.append("  kaudit baseline prune removes the stale entries")
    return lines


def _broker_rules(versions: BrokerVersions, console: Console, *, with_reasons: bool) -> list[str]:
    """Return one line, and below it the reasons for these versions where they are asked for."""
    settled = versions.at_least is not None and versions.at_least == versions.at_most
    hints = ["-v: why"] if versions.because and not with_reasons else []
    if versions.requested == "auto" and not settled:
        hints.append("--broker-version: stricter")
    text = f"Rules of {rules_text(versions)}" + (f" ({', '.join(hints)})" if hints else "")
    lines = console.wrap(visible(text), indent="  ")
    for reason in versions.because if with_reasons else ():
        lines += console.wrap(visible(reason), lead="  - ")
    return lines


def rules_text(versions: BrokerVersions) -> str:
    """Return which brokers' rules were applied: `broker 2.8.0`, `brokers 2.0.0 to 2.4.1`."""
    if versions.at_least is None and versions.at_most is None:
        return (
            f"broker version {versions.profile or ('unknown' if versions.requested == 'auto' else versions.requested)}"
        )
    if versions.at_least == versions.at_most:
        return f"broker {versions.at_least}"
    return f"brokers {versions.at_least or 'any'} to {versions.at_most or 'any'}"


_CLOCKS = {
    ClockSource.GIVEN: "as given",
    ClockSource.BROKERS: "the newest time that a broker wrote",
    ClockSource.CLIENTS: "by timestamps of clients alone: no finding relies on it",
    ClockSource.FILES: "by the newest file: no finding relies on it",
}


def clock_text(clock: AuditClock) -> str:
    """Return what idleness was measured against, and how sure that is."""
    return f"{timestamp_text(clock.now_ms)} UTC, {_CLOCKS[clock.source]}"


_DIGESTS_SHOWN = 8


def digest_section(digests: Digests | None, console: Console) -> list[str]:
    """Return the section about digests; nothing where they were not asked for."""
    if digests is None or not digests.partitions:
        return []
    lines = [console.paint(f"Audited ({digests.algorithm}):", Style.STRONG)]
    for what, digest in named_digests(digests.partitions, _DIGESTS_SHOWN):
        lines += console.wrap(f"{visible(what)}: {digest}", lead="  - ")
    return lines + [f"  - {more}" for more in more_digests(digests, _DIGESTS_SHOWN)]


def named_digests(partitions: Sequence[PartitionDigest], most: int) -> Iterator[tuple[str, str]]:
    """Yield the audited offsets and the digest of the first `most` partitions."""
    for entry in partitions[:most]:
        offsets = f"offsets {span(entry.start_offset, entry.end_offset - 1)}" if entry.batches else "no batch"
        batches = f", {plural(entry.batches, 'batch', 'batches')}" if entry.batches else ""
        yield f"{entry.topic}-{entry.partition} of {entry.replica}, {offsets}{batches}", entry.digest or "no digest"


def more_digests(digests: Digests, most: int) -> Iterator[str]:
    """Yield how many more partitions have digests, where there are some."""
    if len(digests.partitions) > most:
        yield f"{plural(len(digests.partitions) - most, 'more partition')} (json lists all)"

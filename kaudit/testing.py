"""For people who test Kafka clients: assert in a test that what a broker has on disk is healthy."""

from collections.abc import Iterable, Sequence

from kaudit.library import AnyPath, NothingToAuditError, ScanResult, Severity, scan
from kaudit.model.severity import Status
from kaudit.report.console import Console, visible
from kaudit.report.text.finding_block import finding_lines
from kaudit.report.text.formatting import plural

_SHOWN = 20


def assert_log_healthy(  # noqa: PLR0913 - the options of `kaudit scan`, by keyword
    path: AnyPath | Iterable[AnyPath],
    *,
    fail_on: Severity | str = Severity.ERROR,
    broker_version: str = "auto",
    topics: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    compacted_topics: Sequence[str] = (),
    baseline: AnyPath | None = None,
    allow_incomplete: bool = False,
) -> ScanResult:
    """Audit logs and fail the test if a finding is at least as grave as `fail_on`; return the result for more.

    A path without a log fails too, and so does a file that cannot be read unless `allow_incomplete`: a test that
    looked at nothing must not pass. The message is the report `kaudit scan` would print.
    """
    __tracebackhide__ = True
    try:
        result = scan(
            path,
            broker_version=broker_version,
            topics=topics,
            select=select,
            ignore=ignore,
            compacted_topics=compacted_topics,
            baseline=baseline,
        )
    except NothingToAuditError as error:
        raise AssertionError(str(error)) from None
    complaints = _complaints(result, Severity(fail_on), allow_incomplete=allow_incomplete)
    if complaints:
        raise AssertionError("\n".join(complaints))
    return result


def _complaints(result: ScanResult, least: Severity, *, allow_incomplete: bool) -> list[str]:
    grave = [finding for finding in result.findings if finding.status is Status.NEW and finding.severity >= least]
    lines = [f"the log is not healthy: {plural(len(grave), 'finding')}"] if grave else []
    for finding in grave[:_SHOWN]:
        lines += ["", *finding_lines(finding, Console(), many_inputs=len(result.inputs) > 1)]
    if len(grave) > _SHOWN:
        lines += ["", f"and {plural(len(grave) - _SHOWN, 'more finding')}"]
    if result.incomplete and not allow_incomplete:
        unread = [item for item in result.not_audited if item.unreadable]
        lines += ["the audit is incomplete:", *(f"  {visible(item.path)}: {visible(item.reason)}" for item in unread)]
    return lines

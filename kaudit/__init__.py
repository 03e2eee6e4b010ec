"""kaudit: diagnostics and log audit for Apache Kafka's idempotent and transactional producers.

`kaudit.scan(paths)` audits logs from Python; see docs/library.md. The names load what they need when used, so
that `import kaudit` costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kaudit.library import Finding, NothingToAuditError, ScanResult, Severity, UsageError, scan

__version__ = "0.1.0"
__all__ = ["Finding", "NothingToAuditError", "ScanResult", "Severity", "UsageError", "__version__", "scan"]


def __getattr__(name: str) -> object:
    """Load a public name on its first use."""
    if name not in __all__:
        raise AttributeError(f"module 'kaudit' has no attribute {name!r}")
    from kaudit import library  # noqa: PLC0415 - importing kaudit must stay light

    found: object = getattr(library, name)
    return found

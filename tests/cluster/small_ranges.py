"""`python small_ranges.py PATH ENGINE MASTER`: a scan in ranges of 20 kB, as JSON; long enough to be disturbed."""

import sys

from kaudit.cli.engine import choose_engine
from kaudit.cli.options import EngineChoice, EngineOptions
from kaudit.engines.progress import SilentProgress
from kaudit.report.json_documents import pretty, scan_document
from kaudit.report.render_options import RenderOptions
from kaudit.scanning.options import ScanOptions

if __name__ == "__main__":
    path, engine, master = sys.argv[1:]
    chosen = choose_engine(EngineOptions(engine=EngineChoice(engine), master=master or None))
    result = chosen.scan(ScanOptions([path], chunk_bytes=20_000), SilentProgress())
    sys.stdout.write(pretty(scan_document(result, RenderOptions())))

"""The options of `kaudit producers` alone."""

from typing import Annotated

import typer

from kaudit.pipeline.query import SortKey

Summary = Annotated[bool, typer.Option("--summary", help="Only the figures of all ids, no list.")]
Sort = Annotated[
    SortKey, typer.Option("--sort", help="The order: id, oldest first, or the latest, busiest, most suspect first.")
]
Reverse = Annotated[bool, typer.Option("--reverse", help="The other way round.")]
Limit = Annotated[int | None, typer.Option(metavar="N", min=0, help="List the first N only.")]
MinBatches = Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids with N batches or more.")]
MaxBatches = Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids with N batches or fewer.")]
MinEpochs = Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids seen in N epochs or more.")]
MinAge = Annotated[
    str | None, typer.Option(metavar="SPAN", help="Only ids silent for so long: 90s, 30m, 12h, 7d, before --now.")
]
MaxAge = Annotated[str | None, typer.Option(metavar="SPAN", help="Only ids silent for no longer.")]
WithFindings = Annotated[bool, typer.Option("--with-findings", help="Only ids that a finding is about.")]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only ids active at or after this time (RFC 3339, UTC).")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only ids active at or before this time.")]

"""A bug whose traces a finding shows, as reports have it."""

from collections.abc import Sequence

from kaudit.model.json_record import JsonRecord


class KnownBug(JsonRecord, frozen=True):
    """One entry of the catalogue that a finding fits.

    `affected` names the program and its versions, `fixed_in` the first fixed ones (empty: not fixed). `traits` are the
    traces the bug leaves, `traits_seen` those of them that are there; `confidence` says how sure they make it.
    """

    id: str
    title: str
    affected: str
    fixed_in: str
    confidence: str
    traits_seen: Sequence[str] = ()
    traits: Sequence[str] = ()

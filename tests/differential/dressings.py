"""What makes a damaged log look healthy: changes beside the damage, which must never lower its severity."""

import random
from collections.abc import Callable

from tests.differential import side_files
from tests.differential.logs import Embedded, Image
from tests.differential.reference import batches_of, end_of
from tests.differential.side_files import CLEANER, HIGH_WATERMARK, LOG_START, RECOVERY_POINT, Indexes
from tests.differential.wire import HEADER, batch_at

Dressing = Callable[[Image, int, random.Random], bool]
"""Changes an image that was damaged in this segment; False: it cannot."""


def _all_say(offset: int) -> Dressing:
    def say(image: Image, number: int, draw: random.Random) -> bool:
        for name in side_files.CHECKPOINTS:
            image.others[name] = side_files.offset_checkpoint(offset)
        return True

    return say


def _very_high(image: Image, number: int, draw: random.Random) -> bool:
    for name in (HIGH_WATERMARK, RECOVERY_POINT, CLEANER):
        image.others[name] = side_files.offset_checkpoint(2**40)
    return True


def _cleaner_says(choose: Callable[[Image], int]) -> Dressing:
    def say(image: Image, number: int, draw: random.Random) -> bool:
        image.others[CLEANER] = side_files.offset_checkpoint(choose(image))
        return True

    return say


def _no_checkpoints(image: Image, number: int, draw: random.Random) -> bool:
    """The partition's directory was copied alone."""
    image.others = {path: data for path, data in image.others.items() if path.startswith("t-0/")}
    return True


def _no_side_files(image: Image, number: int, draw: random.Random) -> bool:
    """Only segments were copied."""
    image.others = {}
    return True


def _no_indexes(image: Image, number: int, draw: random.Random) -> bool:
    image.others = {path: data for path, data in image.others.items() if not path.endswith("index")}
    return True


def _rebuild_indexes(image: Image) -> None:
    for base, pieces in zip(image.bases, image.pieces, strict=True):
        made = Indexes(base)
        for piece in pieces:
            found = batch_at(piece, 0)
            if found is not None and 0 <= found.last - base < 2**31:
                made.append(len(piece), found.last, HEADER.unpack_from(piece)[8])
            else:
                made.size += len(piece)
        made.close()
        image.others[f"t-0/{base:020d}.index"] = made.offsets.file(active=False)
        image.others[f"t-0/{base:020d}.timeindex"] = made.times.file(active=False)


def _indexes_agree(image: Image, number: int, draw: random.Random) -> bool:
    """The indexes are those of the bytes that are left; a file without a segment is gone."""
    names = {f"{base:020d}" for base in image.bases}
    image.others = {
        path: data
        for path, data in image.others.items()
        if not path.endswith("index") or path.removeprefix("t-0/").split(".")[0] in names
    }
    _rebuild_indexes(image)
    return True


def _side_files_agree(image: Image, number: int, draw: random.Random) -> bool:
    """No side file knows more than the bytes that are left."""
    _indexes_agree(image, number, draw)
    end = end_of(image.files())
    for path in [path for path in image.others if path.endswith(".snapshot")]:
        if int(path.removeprefix("t-0/")[:20]) > end:
            del image.others[path]
    if side_files.LEADER_EPOCHS in image.others:
        epochs = side_files.stated_epochs(image.others)
        image.others[side_files.LEADER_EPOCHS] = side_files.checkpoint([entry for entry in epochs if entry[1] <= end])
    for name in (HIGH_WATERMARK, RECOVERY_POINT, CLEANER):
        offset = side_files.stated(image.others, name)
        if offset is not None:
            image.others[name] = side_files.offset_checkpoint(min(offset, end))
    return True


def _empty_segment(image: Image, number: int, draw: random.Random) -> bool:
    """An empty segment follows the damaged one: at the end of what is left of it, or of what it had."""
    if number >= len(image.bases):
        return False
    following = image.bases[number + 1] if number + 1 < len(image.bases) else None
    own = [found.last for _, found in batches_of(b"".join(image.pieces[number]))]
    base = (
        max(own) + 1 if own and draw.random() < 0.7 else max(batch.last for some in image.batches for batch in some) + 1
    )
    if base <= image.bases[number] or (following is not None and base >= following):
        return False
    image.bases.insert(number + 1, base)
    image.pieces.insert(number + 1, [])
    image.others[f"t-0/{base:020d}.index"] = image.others[f"t-0/{base:020d}.timeindex"] = b""
    return True


def _partial_batch(image: Image, number: int, draw: random.Random) -> bool:
    """One batch before the damage has fewer records than offsets, as a cleaner leaves it."""
    batches = {batch.raw: batch for some in image.batches for batch in some}
    spots = [
        (segment, piece)
        for segment in range(min(number + 1, len(image.bases)))
        for piece, raw in enumerate(image.pieces[segment])
        if raw in batches and len(batches[raw].records) > 1
    ]
    if not spots:
        return False
    segment, piece = draw.choice(spots[:4])
    batch = batches[image.pieces[segment][piece]]
    image.pieces[segment][piece] = batch.keeping(batch.records[1:]).raw
    return True


DRESSINGS: dict[str, Dressing] = {
    "checkpoints 0": _all_say(0),
    "checkpoints -1": _all_say(-1),
    "checkpoints high": _very_high,
    "no checkpoints": _no_checkpoints,
    "no side files": _no_side_files,
    "no indexes": _no_indexes,
    "indexes agree": _indexes_agree,
    "side files agree": _side_files_agree,
    "empty segment follows": _empty_segment,
    "partial batch": _partial_batch,
    "cleaner 0": _cleaner_says(lambda image: 0),
    "cleaner -1": _cleaner_says(lambda image: -1),
    "cleaner at active": _cleaner_says(lambda image: image.bases[-1]),
    "cleaner at end": _cleaner_says(lambda image: end_of(image.files())),
}
EMBEDDED = {f"batches in {kind.value}s": kind for kind in Embedded if kind is not Embedded.NOTHING}
"""Dressings that are part of the log: what its records hold."""
_MOST = 3


def dressed(image: Image, name: str, number: int | None, seed: int) -> Image | None:
    """Return a copy with one of DRESSINGS, or with several as `several`; None where it does not apply.

    `number`: of the damaged segment; None: it is a checkpoint that is damaged.
    """
    made = image.copy()
    draw = random.Random(f"{name} {seed}")
    start = image.others[LOG_START]
    names = draw.sample(sorted(DRESSINGS), draw.randrange(2, _MOST + 1)) if name == "several" else [name]
    applied = [DRESSINGS[each](made, len(image.bases) - 1 if number is None else number, draw) for each in names]
    if number is None and LOG_START in made.others:
        made.others[LOG_START] = start  # the damage itself stays
    return made if all(applied) and (number is not None or LOG_START in made.others) else None

"""Digests of ranges of offsets: a Merkle tree whose leaves are LEAF_OFFSETS offsets each."""

import hashlib
from collections.abc import Iterable

from msgspec import Struct, field

from kaudit.model.digests import LEAF_OFFSETS, MOST_RANGES, RangeDigests

LEAF_BITS = LEAF_OFFSETS.bit_length() - 1

Leaf = tuple[int, bytes]
"""The number of a leaf (its first offset divided by LEAF_OFFSETS) and its digest."""


class Tree(Struct):
    """The digest of leaves that come in ascending order.

    A node is a range of a power-of-two number of leaves that begins at a multiple of that. Its digest is SHA-256 over the
    digests of its halves, or that of the one half that holds anything, so gaps in the offsets cost nothing. `nodes` are those
    that no leaf to come can change, one a level at most, each with the number of a leaf in it.
    """

    nodes: list[Leaf] = field(default_factory=list)

    def add(self, number: int, digest: bytes) -> None:
        """Take a leaf, or a node by the number of any leaf in it: right of all before, and not within one of them."""
        # the node above the last two lies left of this leaf when it is lower than the one that holds this leaf too
        while len(self.nodes) > 1 and _height(self.nodes[-2][0], self.nodes[-1][0]) < _height(
            self.nodes[-1][0], number
        ):
            self._join()
        self.nodes.append((number, digest))

    def append(self, right: "Tree") -> None:
        """Take another tree's leaves, all of them right of these."""
        for node in right.nodes:
            self.add(*node)

    def digest(self) -> bytes | None:
        """Return the digest of all that was added, None of nothing."""
        digest: bytes | None = None
        for _, left in reversed(self.nodes):
            digest = left if digest is None else _node(left, digest)
        return digest

    def _join(self) -> None:
        _, right = self.nodes.pop()
        number, left = self.nodes.pop()
        self.nodes.append((number, _node(left, right)))


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(left + right).digest()


def _height(left: int, right: int) -> int:
    return (left ^ right).bit_length()


def tree_digest(leaves: Iterable[Leaf]) -> bytes | None:
    """Return the digest of leaves, or of nodes, in ascending order."""
    tree = Tree()
    for number, digest in leaves:
        tree.add(number, digest)
    return tree.digest()


class RowOfRanges:
    """The digests of ranges side by side, from leaves in ascending order; leaves outside of them are passed over."""

    def __init__(self, first_offset: int, width: int, count: int) -> None:
        self._first, self._width, self._count = first_offset, width, count
        self._trees: dict[int, Tree] = {}

    def add(self, leaf: Leaf) -> None:
        """Take a leaf."""
        at = ((leaf[0] << LEAF_BITS) - self._first) // self._width
        if 0 <= at < self._count:
            self._trees.setdefault(at, Tree()).add(*leaf)

    def ranges(self) -> RangeDigests:
        """Return the digests."""
        digests = [self._trees[at].digest() if at in self._trees else None for at in range(self._count)]
        return RangeDigests(self._first, self._width, [hexadecimal(digest) for digest in digests])


class WholeLog(Struct):
    """At most `most` ranges of equal width over all leaves, however many there will be: the width doubles as they come."""

    most: int = MOST_RANGES
    _shift: int = 0
    _trees: dict[int, Tree] = field(default_factory=dict)

    def add(self, leaf: Leaf) -> None:
        """Take a leaf."""
        number = leaf[0]
        first = next(iter(self._trees), number >> self._shift)
        while (number >> self._shift) - first >= self.most:
            self._double()
            first = next(iter(self._trees))
        self._trees.setdefault(number >> self._shift, Tree()).add(*leaf)

    def ranges(self, start_offset: int, end_offset: int) -> RangeDigests | None:
        """Return the digests of the ranges that offsets `start_offset` to `end_offset` (exclusive) lie in, None of no offset."""
        if start_offset >= end_offset:
            return None
        while True:
            held = [at << self._shift for at in self._trees]
            first, last = min([start_offset >> LEAF_BITS, *held]), max([(end_offset - 1) >> LEAF_BITS, *held])
            first, last = first >> self._shift, last >> self._shift
            if last - first < self.most:
                break
            self._double()
        digests = [self._trees[at].digest() if at in self._trees else None for at in range(first, last + 1)]
        width = LEAF_OFFSETS << self._shift
        return RangeDigests(first * width, width, [hexadecimal(digest) for digest in digests])

    def narrowed(self, most: int) -> "WholeLog":
        """Return the same in at most `most` ranges; this may not be used any more."""
        self.most = min(self.most, most)
        while self._trees and max(self._trees) - min(self._trees) >= self.most:
            self._double()
        return self

    def digest(self) -> bytes | None:
        """Return the digest of all leaves, None of none."""
        ranges = ((at << self._shift, tree.digest()) for at, tree in self._trees.items())
        return tree_digest((number, digest) for number, digest in ranges if digest is not None)

    def _double(self) -> None:
        narrow, self._trees = self._trees, {}
        self._shift += 1
        for at, tree in narrow.items():
            wide = self._trees.get(at >> 1)
            if wide is None:
                self._trees[at >> 1] = tree
            else:
                wide.append(tree)


def widened(ranges: RangeDigests, first_offset: int, width: int) -> str | None:
    """Return the digest of the `width` offsets from `first_offset`, as far as these ranges cover them.

    `width` is a power of two and at least theirs, and `first_offset` a multiple of it.
    """
    begin = ranges.first_offset // ranges.width
    numbers = range(first_offset // ranges.width, (first_offset + width) // ranges.width)
    held = [(number, ranges.digests[number - begin]) for number in numbers if 0 <= number - begin < len(ranges.digests)]
    return hexadecimal(tree_digest((number, bytes.fromhex(digest)) for number, digest in held if digest is not None))


def hexadecimal(digest: bytes | None) -> str | None:
    """Return a digest as fingerprints have it."""
    return None if digest is None else digest.hex()

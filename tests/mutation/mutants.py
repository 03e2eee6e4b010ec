"""The mutants of a source file: one small change each."""

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
}
_OPPOSITES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
_ORDERLESS = {
    *_OPPOSITES,
    "isinstance",
    "issubclass",
    "cast",
    "getattr",
    "hasattr",
    "setattr",
    "add_sequence",
    "suppress",
}
_TYPES = {"TypeVar", "ParamSpec", "NewType"}
_WEAKER = {
    "Severity": {"ERROR": "WARNING", "WARNING": "NOTE", "NOTE": "WARNING"},
    "Confidence": {"CERTAIN": "LIKELY", "LIKELY": "POSSIBLE", "POSSIBLE": "LIKELY"},
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: bytes `start` to `end` of the source become `replacement`."""

    path: str
    function: str
    """Qualified name of the outermost function around the change; empty outside functions."""
    at_import: bool
    """Whether the changed code runs when the module is imported: outside functions, in decorators, in defaults."""
    kind: str
    line: int
    start: int
    end: int
    replacement: str
    was: str
    """The changed lines of the source, on one line."""
    becomes: str

    @property
    def module(self) -> str:
        """Dotted name of the module."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names the mutant whatever else changes in its file."""
        return self.path, self.function, self.was, self.becomes

    @cached_property
    def source(self) -> bytes:
        """The file with the change."""
        source = (ROOT / self.path).read_bytes()
        return source[: self.start] + self.replacement.encode() + source[self.end :]


def mutants_of(path: str, source: bytes | None = None) -> list[Mutant]:
    """All mutants of a file, by its path in the repository, in the order of the source."""
    source = (ROOT / path).read_bytes() if source is None else source
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


class _Finder(ast.NodeVisitor):
    """Collects the mutants of one module."""

    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._classes: list[str] = []
        self._function = ""
        self._at_import = True

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _add(self, kind: str, start: int, end: int, replacement: str) -> None:
        first = self._source.rfind(b"\n", 0, start) + 1
        last = self._source.find(b"\n", end)
        head, tail = self._source[first:start].decode(), self._source[end:last].decode()
        self.found.append(
            Mutant(
                path=self._path,
                function=self._function,
                at_import=self._at_import,
                kind=kind,
                line=self._source.count(b"\n", 0, start) + 1,
                start=start,
                end=end,
                replacement=replacement,
                was=" ".join(self._source[first:last].decode().split()),
                becomes=" ".join((head + replacement + tail).split()),
            )
        )

    def _replace(self, kind: str, node: ast.expr, replacement: str) -> None:
        self._add(kind, *self._span(node), replacement)

    def _token(self, kind: str, left: ast.expr, right: ast.expr, operator: tuple[str, str]) -> None:
        """Replace the operator between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern, replacement = operator
        found = re.search(pattern, self._source[start:end].decode())
        assert found is not None
        self._add(kind, start + found.start(), start + found.end(), replacement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Keywords of a class (frozen, kw_only) and its decorators are no behaviour to test."""
        self._classes.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._classes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Decorators and defaults run at import, the body when called; annotations not at all."""
        outermost = not self._function
        if outermost:
            self._function = ".".join([*self._classes, node.name])
        for decorator in node.decorator_list:
            self.visit(decorator)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        before, self._at_import = self._at_import, False
        for statement in node.body:
            self.visit(statement)
        self._at_import = before
        if outermost:
            self._function = ""

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast's names

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda of a module is called later, but is made anew only by importing it."""
        self.visit(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Annotations are no code."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """An assertion states what always holds."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """The wording of an error."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Expressions in f-strings have no position before Python 3.12."""

    def visit_If(self, node: ast.If) -> None:
        """A guard or a branch left out; not of what is for the type checker, or for a module run as a program."""
        if any(isinstance(part, ast.Name) and part.id in {"TYPE_CHECKING", "__name__"} for part in ast.walk(node.test)):
            return
        self._replace("deleted guard", node.test, "False")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """A filter left out."""
        for condition in node.ifs:
            self._replace("deleted guard", condition, "True")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The other one of two values."""
        self._replace("comparison", node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """A bound that is one off, or the opposite."""
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, node.comparators, strict=False):
            self._token("comparison", left, right, _COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """A condition left out of several."""
        for left_out in node.values:
            rest = [value for value in node.values if value is not left_out]
            joined = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            self._replace("operand", node, f"({ast.unparse(joined)})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """A negation left out."""
        if isinstance(node.op, ast.Not | ast.Invert):
            self._replace("operand", node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Another operator; not between texts, lists or types."""
        if type(node.op) in _OPERATORS and not any(_is_text_or_type(side) for side in (node.left, node.right)):
            self._token("operand", node.left, node.right, _OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Another operator."""
        if type(node.op) in _OPERATORS and not _is_text_or_type(node.value):
            pattern, replacement = _OPERATORS[type(node.op)]
            self._token("operand", node.target, node.value, (f"{pattern}=", f"{replacement}="))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """One more, or the other truth."""
        if isinstance(node.value, bool):
            self._replace("constant", node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._replace("constant", node, str(node.value + 1))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Another severity."""
        if isinstance(node.value, ast.Name) and node.attr in _WEAKER.get(node.value.id, {}):
            self._replace("severity", node, f"{node.value.id}.{_WEAKER[node.value.id][node.attr]}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Two arguments exchanged; the least for the greatest. What declares a type is for the type checker."""
        name = _called(node)
        if name in _TYPES:
            return
        if name in _OPPOSITES:
            end = self._span(node.func)[1]
            self._add("operand", end - len(name), end, _OPPOSITES[name])
        if name not in _ORDERLESS:
            pairs = (
                (left, right)
                for left, right in zip(node.args, node.args[1:], strict=False)
                if ast.dump(left) != ast.dump(right) and not any(_is_fixed(side) for side in (left, right))
            )
            for left, right in pairs:
                start, end = self._span(left)[0], self._span(right)[1]
                between = self._source[self._span(left)[1] : self._span(right)[0]].decode()
                self._add("swapped argument", start, end, f"{ast.unparse(right)}{between}{ast.unparse(left)}")
                break
        for child in ast.iter_child_nodes(node):
            if not (isinstance(child, ast.keyword) and child.arg == "strict"):
                self.visit(child)


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_fixed(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred | ast.Constant | ast.JoinedStr)


def _is_text_or_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return (node.id[0].isupper() and not node.id.isupper()) or node.id in {"int", "str", "float", "bytes", "bool"}
    if isinstance(node, ast.Constant):
        return node.value is None or isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.ListComp | ast.Tuple)


def python_files(below: str, pattern: str = "*.py") -> list[str]:
    """Paths of the Python files of a folder of the repository, or of the one file."""
    if (ROOT / below).is_file():
        return [below]
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / below).rglob(pattern))

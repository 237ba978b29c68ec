"""Read off the source which calls may give other bits on another machine.

A split has one digest for ten years, so what it is made of uses integers, IEEE + - * / sqrt, and
nothing that a C library, a vector instruction or a version of numpy does in a way of its own.
"""

import ast
from typing import NamedTuple

# What of numpy gives the same bits everywhere, by why it does.
EXACT = {
    "makes, picks, moves or joins values": """
        append arange argwhere array array_split asarray ascontiguousarray atleast_1d atleast_2d
        broadcast_arrays broadcast_to choose column_stack compress concatenate copy delete diag
        empty empty_like expand_dims extract eye flatnonzero flip frombuffer fromiter full
        full_like hstack indices insert ix_ meshgrid moveaxis nonzero ones ones_like place put
        put_along_axis ravel_multi_index repeat reshape roll select split squeeze stack swapaxes
        take take_along_axis tile transpose tril triu unravel_index vstack where zeros zeros_like
    """,
    "compares, sorts or searches, and settles ties by place": """
        all any argmax argmin argsort array_equal clip digitize equal greater greater_equal
        intersect1d isfinite isin isinf isnan less less_equal lexsort logical_and logical_not
        logical_or logical_xor max maximum min minimum not_equal searchsorted setdiff1d setxor1d
        sign signbit sort union1d unique
    """,
    "counts, or computes with integers and bits": """
        add.at bincount bitwise_and bitwise_or bitwise_xor count_nonzero cumprod cumsum diff divmod
        floor_divide gcd invert lcm left_shift mod packbits prod remainder right_shift subtract.at
        sum unpackbits
    """,
    "has one right result by IEEE 754": """
        abs absolute add ceil copysign divide fabs floor fmod frexp ldexp modf multiply negative
        nextafter outer reciprocal rint sqrt square subtract true_divide trunc
    """,
    "is a type or a constant": """
        bool_ dtype errstate finfo float32 float64 floating generic iinfo inf int16 int32 int64
        int8 integer nan ndarray newaxis pi typing uint16 uint32 uint64 uint8
    """,
    "of the standard library: integers, or one right result": """
        math.ceil math.comb math.copysign math.fabs math.factorial math.floor math.frexp math.fsum
        math.gcd math.inf math.isfinite math.isinf math.isnan math.isqrt math.lcm math.ldexp
        math.nan math.perm math.pi math.prod math.sqrt math.trunc math.ulp
    """,
}
KNOWN = {name for names in EXACT.values() for name in names.split()}

OTHER_MODULES = {"cmath", "random", "scipy", "secrets", "statistics"}
SUMS = {"sum", "cumsum", "prod", "cumprod"}  # exact where they are over integers
FLOAT_REDUCTIONS = {"mean", "std", "var", "dot", "trace", "vdot", "average"}

INSTEAD = "take it from niidpart.arithmetic (exact.log, exact.exp, exact.normal_quantile)"
UNKNOWN = f"is not known to give the same bits everywhere; {INSTEAD}"
MODULE = "is a module whose results differ between machines or versions"
SUM = (
    "may add floats in an order of its own; say dtype=np.int64 for integers, np.count_nonzero for "
    "truth values, exact.add_in_order for floats"
)
REDUCTION = "adds floats in an order of its own; use exact.add_in_order"
POWER = "calls the C library; multiply, or shift integers"
UNSTABLE = "orders equal keys by chance; say kind='stable'"
WEIGHTS = "adds floats; use np.add.at on integers"


class Offence(NamedTuple):
    """A place in a source whose bits may differ, and why."""

    line: int
    code: str
    why: str


def find_offences(source):
    """[Offence] of a python source, by line."""
    tree = ast.parse(source)
    reader = _Reader(_read_imports(tree))
    reader.visit(tree)
    return sorted(reader.offences)


def _read_imports(tree):
    """{name in the file: the dotted name that it stands for}."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


class _Reader(ast.NodeVisitor):
    def __init__(self, imports):
        self.imports, self.offences = imports, []

    def report(self, node, why):
        self.offences.append(Offence(node.lineno, ast.unparse(node), why))

    def resolve(self, node):
        """The dotted name of a chain of attributes that begins with an import, else ""."""
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            return f"{base}.{node.attr}" if base else ""
        return self.imports.get(node.id, "") if isinstance(node, ast.Name) else ""

    def check_name(self, node):
        """Whether the node is a name of a module; it is reported if it is not exact."""
        name = self.resolve(node)
        module = name.split(".")[0]
        if module in OTHER_MODULES:
            self.report(node, MODULE)
        elif module == "numpy" and "." in name:
            inner = name.removeprefix("numpy.")
            if inner not in KNOWN and inner.split(".")[0] != "typing":
                self.report(node, UNKNOWN)
        elif module == "math" and "." in name and name not in KNOWN:
            self.report(node, UNKNOWN)
        return bool(name)

    def visit_Attribute(self, node):
        if not self.check_name(node):
            self.generic_visit(node)

    def visit_Name(self, node):
        self.check_name(node)

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            self.report(node, REDUCTION)
        if isinstance(node.op, ast.Pow) and not (_is_whole(node.left) and _is_whole(node.right)):
            self.report(node, POWER)
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        if isinstance(node.op, ast.MatMult | ast.Pow):
            self.report(node, REDUCTION if isinstance(node.op, ast.MatMult) else POWER)
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in ("sum", "pow"):
            self.report(node, SUM if node.func.id == "sum" else POWER)
        if isinstance(node.func, ast.Attribute):
            self.check_call(node, node.func.attr)
        self.generic_visit(node)

    def check_call(self, node, function):
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if function in SUMS and not self.is_integer_sum(node, given.get("dtype")):
            self.report(node, SUM)
        if function in FLOAT_REDUCTIONS:
            self.report(node, REDUCTION)
        if function == "argsort" and ast.unparse(given.get("kind", node)) != "'stable'":
            self.report(node, UNSTABLE)
        if function == "bincount" and (len(node.args) > 1 or "weights" in given):
            self.report(node, WEIGHTS)

    def is_integer_sum(self, node, dtype):
        """Whether a sum or product says that it is over integers, or is python's own math.prod."""
        is_python = self.resolve(node.func).startswith("math.")
        return is_python or self.resolve(dtype).startswith(("numpy.int", "numpy.uint"))


def _is_whole(node):
    """Whether a node is a whole number that stands in the source, 0 or more."""
    return isinstance(node, ast.Constant) and type(node.value) is int

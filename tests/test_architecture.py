"""The shape of the code: who may import whom, how long a function or a module may be, what it depends on."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("boost_core", "workers", "service")

MAX_FUNCTION_LINES = 50
MAX_MODULE_LINES = 400
# Stands right above a function or in its signature, or in the first lines of a module, and gives the reason.
LONG_ON_PURPOSE = re.compile(r"#\s*long on purpose:\s*\S")
MODULE_HEADER_LINES = 5

CORE_MAY_IMPORT = {"boost_core", "numpy", "numba", "llvmlite"}


# --- layers ------------------------------------------------------------------------------------------------


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts on the packages in `folder`, in a process that has imported nothing else."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copied_tree(tmp_path: Path) -> Path:
    """A copy of the packages and their contracts that a test may spoil."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "*.nb[ci]"))
    return tmp_path


def test_contracts_are_kept():
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("package", "imported", "contract"),
    [
        ("boost_core", "workers", "service -> workers -> boost_core, and nothing points back"),
        ("workers", "service", "service -> workers -> boost_core, and nothing points back"),
        ("boost_core", "pyarrow", "boost_core is pure mathematics: no I/O, no Dask, no clock, no HTTP"),
        ("boost_core", "time", "boost_core is pure mathematics: no I/O, no Dask, no clock, no HTTP"),
        (
            "workers",
            "fastapi",
            "workers know Dask and Arrow, and nothing of HTTP servers, stores or the command line",
        ),
    ],
)
def test_a_bad_import_breaks_its_contract(copied_tree: Path, package: str, imported: str, contract: str):
    (copied_tree / package / "spoiled.py").write_text(f"import {imported}\n")

    done = lint_imports(copied_tree)

    output = " ".join(done.stdout.split())  # the report is wrapped to the terminal's width
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{contract} BROKEN" in output
    assert f"{package}.spoiled -> {imported}" in output


def imported_packages(source: str) -> set[str]:
    """Top-level names that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_the_core_imports_nothing_but_numpy_numba_and_the_standard_library():
    # A contract can only forbid what it lists; this closes the list.
    allowed = CORE_MAY_IMPORT | sys.stdlib_module_names
    offenders = {
        str(path.relative_to(ROOT)): sorted(extra)
        for path in modules("boost_core")
        if (extra := imported_packages(path.read_text()) - allowed)
    }
    assert offenders == {}


def test_imported_packages_sees_every_form():
    source = "import a.b as x\nfrom c.d import e\nfrom . import near\ndef f():\n    import g, h\n"
    assert imported_packages(source) == {"a", "c", "g", "h"}


# --- length ------------------------------------------------------------------------------------------------


def modules(*packages: str) -> Iterator[Path]:
    for package in packages:
        yield from sorted((ROOT / package).rglob("*.py"))


def long_functions(source: str) -> list[tuple[str, int]]:
    """Name and length of each function over the limit that gives no reason; docstrings do not count."""
    lines = source.splitlines()
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = n_lines(node) - docstring_lines(node)
        if length > MAX_FUNCTION_LINES and not gives_reason(node, lines):
            found.append((node.name, length))
    return found


def n_lines(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return n_lines(node.body[0]) if ast.get_docstring(node, clean=False) is not None else 0


def gives_reason(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> bool:
    """Whether the reason stands right above the `def` or its first decorator, or in the signature."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    signature = lines[first - 1 : max(node.lineno, node.body[0].lineno - 1)]
    above = lines[max(first - 2, 0) : first - 1]
    return any(LONG_ON_PURPOSE.search(line) for line in [*above, *signature])


def is_long_module(source: str) -> bool:
    lines = source.splitlines()
    reason = any(LONG_ON_PURPOSE.search(line) for line in lines[:MODULE_HEADER_LINES])
    return len(lines) > MAX_MODULE_LINES and not reason


def test_no_function_is_long_without_a_reason():
    found = [(str(path.relative_to(ROOT)), *f) for path in modules(*PACKAGES) for f in long_functions(path.read_text())]
    assert found == []


def test_no_module_is_long_without_a_reason():
    found = [str(path.relative_to(ROOT)) for path in modules(*PACKAGES) if is_long_module(path.read_text())]
    assert found == []


BODY = "    pass\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n" + BODY * 49, []),
        ("def f():\n" + BODY * 50, [("f", 51)]),
        ("async def f():\n" + BODY * 50, [("f", 51)]),
        ("class C:\n    def f(self):\n" + ("    " + BODY) * 50, [("f", 51)]),
        ('def f():\n    """One\n\n    two.\n    """\n' + BODY * 49, []),
        ("# long on purpose: one table\ndef f():\n" + BODY * 50, []),
        ("# long on purpose: one table\n@njit\ndef f():\n" + BODY * 50, []),
        ("def f():  # long on purpose: one table\n" + BODY * 50, []),
        ("def f(\n    a,  # long on purpose: one table\n):\n" + BODY * 50, []),
        ("# long on purpose:\ndef f():\n" + BODY * 50, [("f", 51)]),
        ("# long on purpose: too far away\n\ndef f():\n" + BODY * 50, [("f", 51)]),
        ("def f():\n    pass\n    # long on purpose: not here\n" + BODY * 50, [("f", 53)]),
    ],
)
def test_function_length(source: str, expected: list[tuple[str, int]]):
    assert long_functions(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\n" * 400, False),
        ("x = 1\n" * 401, True),
        ('"""A table."""\n# long on purpose: one row a code\n' + "x = 1\n" * 400, False),
        ("x = 1\n" * 400 + "# long on purpose: too late\n", True),
    ],
)
def test_module_length(source: str, expected: bool):
    assert is_long_module(source) is expected


# --- dependencies ------------------------------------------------------------------------------------------

RUNTIME, EXTRAS = "runtime", ("demo", "dev", "benchmarks")
# Which parts of pyproject.toml each lock was made from.
LOCKS = {
    "runtime.txt": (RUNTIME,),
    "demo.txt": (RUNTIME, "demo"),
    "dev.txt": (RUNTIME, "demo", "dev"),
    "benchmarks.txt": (RUNTIME, "benchmarks"),
}


def direct_dependencies() -> dict[str, set[str]]:
    """Names of the packages that pyproject.toml asks for, by part."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    parts = {RUNTIME: project["dependencies"], **project["optional-dependencies"]}
    return {part: {re.split(r"[<>=!~\[ ;]", line)[0] for line in lines} for part, lines in parts.items()}


def locked_versions(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements" / lock).read_text(), re.MULTILINE))


def test_every_direct_dependency_says_why():
    text = (ROOT / "docs" / "dependencies.md").read_text()
    sections = {
        match[0].lower(): match[1]
        for match in re.findall(r"^## (?:Extra `)?(\w+)`?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    }
    documented = {
        part: set(re.findall(r"^\| ([\w-]+) \| [^|]", sections[part], re.M)) - {"package"}
        for part in (RUNTIME, *EXTRAS)
    }
    assert documented == direct_dependencies()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_its_parts_ask_for(lock: str):
    asked = set().union(*(direct_dependencies()[part] for part in LOCKS[lock]))
    assert asked <= locked_versions(lock).keys()


def test_locks_agree_on_every_version():
    versions: dict[str, set[str]] = {}
    for lock in LOCKS:
        for name, version in locked_versions(lock).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address_or_option(lock: str):
    text = (ROOT / "requirements" / lock).read_text()
    assert re.findall(r"^-.*|.*://.*", text, re.MULTILINE) == []

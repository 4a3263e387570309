"""Tasks of the project: ``nox`` before a commit, ``nox -s test-all`` before a merge.

CONTRIBUTING.md lists them, and the servers and the browser that some tests need, which
nox does not install.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"
nox.options.sessions = ["check", "test"]

# All sessions install these versions, except those that remove the variables.
PINS = Path(".ci/pins.txt")
CONSTRAINTS = ["PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"]
CONSTRAINTS += ["UV_CONSTRAINT", "UV_BUILD_CONSTRAINT"]
os.environ.update(dict.fromkeys(CONSTRAINTS, str(PINS)))
UNPINNED = dict.fromkeys(CONSTRAINTS)

PROJECT = nox.project.load_toml("pyproject.toml")
NAME = PROJECT["project"]["name"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
# Installed without their dependencies: Airflow, in a session of its own, since these
# are too many; google-genai, since it refuses the newest tenacity.
BARE = {"airflow", "google-genai"}
TOGETHER = sorted(EXTRAS.keys() - BARE)
PYTHONS = nox.project.python_versions(PROJECT)
CURRENT = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = sorted({*PYTHONS, "3.14"} - {CURRENT})
# The extra `test` includes these.
INCLUDED = ["cli", "hypothesis"]
OLDEST = sorted(EXTRAS.keys() - INCLUDED)
# No version of the second can be installed with the oldest version of the first.
APART = {"sqlalchemy": "dbos"}
AIRFLOW = "retrykit/integrations/airflow.py"
# CPython 3.14. Its packages of the extra `test` that have no compiled parts.
PYODIDE = "pyodide@314.0.7"
PURE_PYTHON = ["anyio", "looptime", "pytest", "tomli-w", "tzdata"]
# Its files that a browser loads.
FOR_BROWSERS = ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm"]
FOR_BROWSERS += ["pyodide-lock.json", "python_stdlib.zip"]
# What retrykit and `retrykit show` import; rich draws tables without its dependencies.
IN_EXAMPLES = ["click", "rich", "wrapt"]
# The rooms of the package that are covered without libraries of integrations.
ROOMS = ["_core", "_internal", "budgets", "conditions", "config", "hints", "limits"]
ROOMS += ["presets", "schedules", "simulate", "testing"]
# With those of pages and of jobs, which a browser may run.
OWN = sorted([*ROOMS, "analysis", "durable"])
# Those that depend on threads, event loops, processes or names of the interpreter.
OF_PYTHON = ["_core", "_internal", "budgets", "durable", "limits", "testing"]
# With those that are marked as thorough.
EVERYTHING = ["python", "-m", "pytest", "-n", "auto", "--require-all"]
EVERYTHING += ["--hypothesis-profile=full", "-m", "not engines"]
# The files in the root folder that tests read.
FILES = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"]
FILES += [".pre-commit-config.yaml", "conftest.py", "noxfile.py", "pyproject.toml"]


def install_everything(session: nox.Session, *groups: str) -> None:
    """Install the project with every extra, and some dependency groups."""
    dependencies = nox.project.dependency_groups(PROJECT, *groups)
    session.install("-e", f".[{','.join(TOGETHER)}]", *dependencies)
    session.install("--no-deps", *EXTRAS["google-genai"])


@nox.session
def check(session: nox.Session) -> None:
    """Check format, style, spelling, types, and the workflows of GitHub."""
    install_everything(session, "check", "everything", "benchmark")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("codespell", ".")
    session.run("mypy", "retrykit", "examples", "benchmarks", "tests/typing")
    session.run("pyright", "--pythonpath", f"{session.bin}/python")
    session.run("python", "-m", "tests._support.public_types")
    session.run("zizmor", "--offline", "--quiet", "--persona=pedantic", ".github")
    schemas = ["check-jsonschema", "--quiet", "--builtin-schema"]
    workflows = map(str, Path(".github/workflows").iterdir())
    session.run(*schemas, "vendor.github-workflows", *workflows)
    session.run(*schemas, "vendor.dependabot", ".github/dependabot.yml")


@nox.session
def test(session: nox.Session) -> None:
    """Run the tests that need no library of an integration."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "auto", *session.posargs)


@nox.session(name="test-all", python=False)
def test_all(session: nox.Session) -> None:
    """Run the sessions of tests below, or some of them: ``-- full wheel``."""
    arguments = {
        # Each test on one server of each engine: on all it takes twice as long.
        "engines": ["-m", "engines and not thorough"],
        "wheel": [f"tests/{room}" for room in [*OF_PYTHON, "as_installed"]],
    }
    # On this Python, `full` tests the package, if there is another one.
    others = [each for each in OTHERS if shutil.which(f"python{each}")]
    for name in session.posargs or ["full", "fuzz", "engines", "airflow", "wheel"]:
        python = f"-{[CURRENT, *others][-1]}" if name == "wheel" else ""
        session.notify(f"{name}{python}", arguments.get(name, []))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site without a warning, and try it: build/site/index.html."""
    install_everything(session, "docs", "everything", "benchmark")
    python = bundle_python(session) if shutil.which("npm") else None
    session.run(
        *("python", "-m", "sphinx", "--fail-on-warning", "--keep-going", "-j", "auto"),
        *("-D", f"try_it_python={python or ''}"),
        *("-d", "build/doctrees", "docs", "build/site"),
        # The hash seed fixes the order of sets.
        env={"PYTHONHASHSEED": "0"},
    )
    session.run("python", "-m", "tests.site.search", "build/site")
    if python:
        session.run("python", "-m", "pytest", "tests/site/try_it.py")
    else:
        session.warn("there is no npm: nothing can be run on the page 'Try it'")


def bundle_python(session: nox.Session) -> Path:
    """Return a new folder with Python for browsers, retrykit, and its commands."""
    folder = Path(session.create_tmp()) / "try_it"
    shutil.rmtree(folder, ignore_errors=True)
    pyodide, site = install_pyodide(session, folder), folder / "site-packages"
    install_pure(session, site, "--no-deps", ".", *IN_EXAMPLES)
    bundle = folder / "static/pyodide"
    bundle.mkdir(parents=True)
    for name in FOR_BROWSERS:
        shutil.copy(pyodide / name, bundle)
    shutil.make_archive(str(bundle / "packages"), "zip", site)
    return bundle.parent


def install_pyodide(session: nox.Session, folder: Path) -> Path:
    """Install Pyodide into a folder, and return that of its files."""
    session.run(
        *("npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-save"),
        *("--no-audit", "--no-fund", "--fetch-timeout=30000"),
        *("--loglevel=error", PYODIDE),
        external=True,
    )
    return folder / "node_modules/pyodide"


def install_pure(session: nox.Session, site: Path, *requirements: str) -> None:
    """Install packages without compiled parts into a folder, for Pyodide."""
    session.install("pip")
    session.run(
        *("python", "-m", "pip", "install", "--quiet", "--target", str(site)),
        *("--no-compile", "--only-binary=:all:", "--platform=any", "--abi=none"),
        *("--implementation=py", "--python-version=3.14"),
        *requirements,
    )


@nox.session
def bench(session: nox.Session) -> None:
    """Print the tables of docs/benchmarks.md, or another one: ``-- http``."""
    install_everything(session, "benchmark")
    session.run("python", "-m", ".".join(["benchmarks", *session.posargs]))


@nox.session
def speed(session: nox.Session) -> None:
    """Fail if a call takes 5 % more instructions than before: ``-- COMMIT``."""
    session.install("-e", ".[cli,prometheus]")
    session.run("python", "-m", "benchmarks.instructions", *session.posargs)


@nox.session(reuse_venv=False)
def package(session: nox.Session) -> None:
    """Build, check and install what a release publishes, in dist/: ``-- v1.2.3``."""
    session.install(*nox.project.dependency_groups(PROJECT, "package"))
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build", "--installer=uv", silent=True)
    [sdist], [wheel] = (Path("dist").glob(each) for each in ("*.tar.gz", "*.whl"))
    version = wheel.name.split("-")[1]
    if session.posargs not in ([], [f"v{version}"]):
        session.error(f"the version is {version}, and not {' '.join(session.posargs)}")
    session.run("twine", "check", "--strict", str(sdist), str(wheel))
    session.run("check-wheel-contents", str(wheel))
    for path in (sdist, wheel):
        printed = installed_version(session, path)
        if printed != f"retrykit {version}":
            session.error(f"{path} installs {printed}")


def installed_version(session: nox.Session, path: Path) -> str:
    """Install a distribution alone, then its command line; return what that prints."""
    folder = Path(session.create_tmp(), path.suffix)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    session.run("uv", "venv", "--quiet", str(folder))
    install = ["uv", "pip", "install", "--quiet", "--python", f"{programs}/python"]
    session.run(*install, str(path))
    code = ["-I", "-c", "from retrykit import retry"]
    session.run(f"{programs}/python", *code, external=True)
    session.run(*install, f"{path}[cli]")
    command = [f"{programs}/retrykit", "--version"]
    return session.run(*command, external=True, silent=True).strip()


def build_wheel(session: nox.Session) -> Path:
    """Build the wheel, and return its path, beside copies of all but the package."""
    session.install("build[uv]")
    folder = Path(session.create_tmp())
    build = ["python", "-m", "build", "--installer=uv", "--outdir", str(folder)]
    session.run(*build, silent=True)
    # Other sessions write these while this one copies.
    caches = shutil.ignore_patterns("__pycache__")
    for name in (".ci", "benchmarks", "docs", "examples", "tests"):
        shutil.copytree(name, folder / name, ignore=caches)
    for name in FILES:
        shutil.copy(name, folder)
    [path] = folder.glob("*.whl")
    return path


@nox.session(python=[CURRENT, *OTHERS], reuse_venv=False)
def wheel(session: nox.Session) -> None:
    """Run `test` on a CPython against the wheel, without the folder of the package."""
    path = build_wheel(session)
    session.install(f"{path}[test]")
    with session.chdir(path.parent):
        tests = session.posargs or ["tests"]
        session.run("python", "-m", "pytest", "-n", "auto", *tests)


@nox.session(reuse_venv=False)
def wasm(session: nox.Session) -> None:
    """Test the wheel in Pyodide: Python of a browser, 32 bits and without threads."""
    path = build_wheel(session)
    # Some of the pinned versions have compiled parts.
    session.env.update(UNPINNED)
    folder, site = path.parent, path.parent / "site-packages"
    pyodide = install_pyodide(session, folder)
    install_pure(session, site, f"{path}[cli,hypothesis]", *PURE_PYTHON)
    tests = [f"tests/{room}" for room in OWN]
    session.run(
        *("node", str(folder / "tests/wasm/run.mjs")),
        *(str(pyodide), str(site), str(folder)),
        *("--hypothesis-profile=few", *(session.posargs or tests)),
        external=True,
    )


@nox.session
def full(session: nox.Session) -> None:
    """Run every test except ``tests/engines``; cover every branch of the core."""
    install_everything(session, "everything", "benchmark")
    own = [f"tests/{room}" for room in [*ROOMS, "durable"]]
    own += ["tests/test_distribution.py", "tests/test_errors.py"]
    # With coverage, tests take twice as long: here only where it finds something.
    measured = ["--cov", "--cov-report=", "--cov-fail-under=0"]
    measured += ["-m", "not engines and not thorough"]
    tests = [*EVERYTHING, *session.posargs]
    session.run(*tests, *measured, "retrykit", *own)
    rooms = ",".join(f"retrykit/{room}/*" for room in ROOMS)
    session.run("coverage", "report", f"--include={rooms}")
    session.run(*tests, "-m", "thorough and not engines", "retrykit", *own)
    others = [f"--ignore={path}" for path in own]
    session.run(*tests, "--durations=10", *others, "tests")


@nox.session
def thorough(session: nox.Session) -> None:
    """Run the tests of `full` with more random examples; cover every branch of all."""
    install_everything(session, "everything", "benchmark")
    session.run(
        *(*EVERYTHING, "--hypothesis-profile", "thorough"),
        *("--cov", "--cov-report", "term", *session.posargs),
    )


@nox.session
def alone(session: nox.Session) -> None:
    """Run each file of tests or examples in a process of its own."""
    install_everything(session, "everything", "benchmark")
    session.run("python", "-m", "tests._support.alone", *session.posargs)


@nox.session
def shuffled(session: nox.Session) -> None:
    """Run the tests in a random order, which is printed as a seed: ``-- SEED``."""
    install_everything(session, "everything", "benchmark")
    session.install("pytest-random-order>=1.2")
    # In one process, since the order of several depends on how fast each of them is.
    command = ["python", "-m", "pytest", "--random-order"]
    for seed in session.posargs or [""]:
        session.run(*command, *(["--random-order-seed", seed] if seed else []))


@nox.session
def busy(session: nox.Session) -> None:
    """Run the tests beside two busy processes, three times or more often: ``-- 5``."""
    install_everything(session, "everything", "benchmark")
    # It ends with this process.
    loop = "import os; nox = os.getppid()\nwhile os.getppid() == nox: pass"
    command = [sys.executable, "-c", loop]
    loops = [subprocess.Popen(command) for _ in range(2)]  # noqa: S603  fixed
    try:
        for _ in range(int(*session.posargs or [3])):
            session.run("python", "-m", "pytest", "-n", "auto")
    finally:
        for each in loops:
            each.kill()


@nox.session
def fuzz(session: nox.Session) -> None:
    """Feed random inputs, most of them invalid, to everything that reads data."""
    session.install("-e", ".[test,migrate]")
    arguments = session.posargs or ["--count", "50000", "--seed", "1"]
    session.run("python", "-m", "tests.fuzz", *arguments)


@nox.session
def engines(session: nox.Session) -> None:
    """Test durable jobs while their workers and servers are killed; soak transports."""
    install_everything(session, "everything", "benchmark")
    session.run(
        *("python", "-m", "pytest", "-n", "6", "-m", "engines", "tests/engines"),
        *session.posargs,
    )
    session.run("python", "-m", "benchmarks.soak", "--requests=4000")


@nox.session
def originals(session: nox.Session) -> None:
    """Hold presets and docs/comparison.md against other libraries; ``-- --write``."""
    groups = nox.project.dependency_groups(PROJECT, "originals", "comparison")
    session.install("-e", ".[cli,prometheus]", *groups)
    session.install("--no-deps", *EXTRAS["google-genai"])
    session.run("python", "-m", "tests.originals", *session.posargs)
    # Not if presets are named.
    if set(session.posargs) <= {"--write"}:
        session.run("python", "-m", "benchmarks.comparison", *session.posargs)


@nox.session
def reality(session: nox.Session) -> None:
    """Hold simulations against real processes; ``-- --write`` renews the table."""
    session.install("-e", ".")
    session.run("python", "-m", "tests.reality", *session.posargs)


@nox.session
def airflow(session: nox.Session) -> None:
    """Test the integration of Airflow, without the dependencies of Airflow."""
    session.install("-e", ".[test]", "mypy", "pytest-cov")
    # These are 130 packages, and its retry policies need none of them.
    session.install("--no-deps", *EXTRAS["airflow"])
    session.run(
        *("python", "-m", "pytest", "tests/integrations/test_airflow.py", AIRFLOW),
        *("--cov=retrykit.integrations.airflow", "--cov-branch"),
        *("--cov-config=/dev/null", "--cov-fail-under=100"),
        # `full`, at the same time, has its own.
        env={"COVERAGE_FILE": str(Path(session.bin, "coverage.data"))},
    )
    session.run("mypy", "--config-file=", "--strict", AIRFLOW)


@nox.session(python=PYTHONS[0], reuse_venv=False)
@nox.parametrize("extra", OLDEST, ids=OLDEST)
def oldest(session: nox.Session, extra: str) -> None:
    """Test an extra with its oldest versions: ``nox -s "oldest(redis)"``."""
    session.env.update(UNPINNED)
    included = INCLUDED if extra == "test" else []
    asked = [*PROJECT["project"]["dependencies"]]
    asked += [each for name in [extra, *included] for each in EXTRAS[name]]
    # Unlike `--resolution lowest-direct`, this keeps the test tools new, and fails if a
    # version cannot be installed.
    versions = [each.replace(">=", "==") for each in asked if f"{NAME}[" not in each]
    selected = ["--extra", extra]
    if extra == "test":
        session.install("-e", ".[test]", *versions)
        selected = []
    elif extra == "airflow":
        session.install("-e", ".[test]")
        session.install("--no-deps", *versions)
    else:
        # Files that need several libraries are tested with the newest of the others.
        others = ",".join(each for each in TOGETHER if each != APART.get(extra))
        groups = nox.project.dependency_groups(PROJECT, "everything", "benchmark")
        session.install("-e", f".[{others}]", *groups, *versions)
        if extra != "google-genai":
            # All SDKs are tested through one table.
            session.install("--no-deps", *EXTRAS["google-genai"])
    session.run(
        *("python", "-m", "pytest", "-n", "auto", "-W", "ignore::DeprecationWarning"),
        # From google-api-core, in the last year of a Python.
        *("-W", "ignore:You are using a Python version:FutureWarning"),
        *(*selected, *session.posargs),
    )


@nox.session(reuse_venv=False)
def newest(session: nox.Session) -> None:
    """Run `thorough` with the newest versions, any of which can break it."""
    session.env.update(UNPINNED)
    thorough.func(session)


@nox.session
def pins(session: nox.Session) -> None:
    """Renew .ci/pins.txt, the versions that the gate installs."""
    session.env.update(UNPINNED)
    session.install("uv")
    command = ["uv", "pip", "compile", "--quiet", "--upgrade", "pyproject.toml"]
    command += ["--universal", "--python-version", PYTHONS[0]]
    command += ["--no-header", "--no-annotate"]
    together = [f"--extra={extra}" for extra in TOGETHER]
    together += [f"--group={group}" for group in PROJECT["dependency-groups"]]
    lines = {"# Made by nox -s pins."}
    bare = [f"--extra={extra}" for extra in sorted(BARE)]
    for selected in (together, [*bare, "--no-deps"]):
        lines.update(session.run(*command, *selected, silent=True).splitlines())
    PINS.write_text("\n".join([*sorted(lines), ""]), "utf-8")

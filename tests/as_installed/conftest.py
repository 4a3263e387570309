"""The home and the project of the user who runs the documented commands."""

import shutil
from pathlib import Path

import pytest

PROJECT = Path(__file__).with_name("project")

# They are copied, and imported by the commands.
collect_ignore = ["project", "dbos_jobs.py"]


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """Return a home folder with those that shells have for completions."""
    folder = tmp_path_factory.mktemp("home")
    for name in (".zfunc", ".config/fish/completions"):
        (folder / name).mkdir(parents=True)
    return folder


@pytest.fixture
def project(tmp_path):
    """Return a copy of the user's project."""
    return copy_project(tmp_path)


def copy_project(folder):
    """Copy the user's project into a folder, and return it.

    The commands name its modules by their paths and as they are imported.
    """
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
    (folder / "mypackage").symlink_to("src/mypackage")
    (folder / "clients.py").symlink_to("src/mypackage/clients.py")
    return folder

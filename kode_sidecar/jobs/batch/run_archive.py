"""Packs a job for a worker that shares no folder with us, and the run that comes back."""

import io
import os
import secrets
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

from kode_sidecar.core.text.secret_text import find_in_data
from kode_sidecar.core.whole_files import read_user_text
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.globs import compile_glob
from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, make_roots
from kode_sidecar.jobs.batch.engine import Job
from kode_sidecar.jobs.run import Overrides, RunConfig, parse_run_config

CONFIG, WORKSPACE, PROMPT = "config", "workspace", "prompt.md"
_MOST_FILES = 100_000


def pack_job(job: Job) -> bytes:
    """Return an archive of a job: its configuration with all it refers to, prompt and project.

    Of the project it holds what a run would copy: no ignored files and none with credentials.
    Blocks; raises KodeError `ConfigInvalid`, `Storage`.
    """
    config = parse_run_config(
        read_user_text(job.config), job.config.name, Overrides(fields=job.task.fields)
    )
    made = io.BytesIO()
    try:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.write(job.config, f"{CONFIG}/{job.config.name}")
            archive.writestr(PROMPT, job.task.prompt)
            for name in (*config.skills.folders, *filter(None, [config.runtime.script])):
                _add_beside(archive, job.config.parent, name)
            project = job.task.workspace or config.workspace.source
            if project:
                _add_project(archive, job.config.parent / project, config)
    except OSError as error:
        raise KodeError("Storage", f"The task cannot be packed: {error.strerror}.") from None
    return made.getvalue()


def _add_beside(archive: zipfile.ZipFile, base: Path, name: str) -> None:
    """Add a file or folder that lies below the configuration."""
    if os.path.isabs(name):
        raise KodeError(
            "ConfigInvalid",
            f"{name} is an absolute path, which other machines do not have: put it beside the "
            "configuration, or share a drive and leave out --archives.",
        )
    path = base / name
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    for one in files:
        archive.write(one, f"{CONFIG}/{one.relative_to(base).as_posix()}")


def _add_project(archive: zipfile.ZipFile, project: Path, config: RunConfig) -> None:
    for path in _project_files(project, config):
        if path.is_file() and not path.is_symlink():
            archive.write(path, f"{WORKSPACE}/{path.relative_to(project).as_posix()}")
    archive.mkdir(WORKSPACE)


def _project_files(project: Path, config: RunConfig) -> Iterator[Path]:
    (root,) = make_roots([project])
    excluded = [compile_glob(pattern) for pattern in config.workspace.exclude]
    listing = list_tree(
        Location(root, root.path, root.real, (), "."),
        lambda path: not any(excludes(path) for excludes in excluded),
        _MOST_FILES,
        lambda: False,
    )
    if listing.cut:
        raise KodeError("TooLarge", f"{project.name} has too many files to send {listing.cut}.")
    for file in listing.files:
        path = project.joinpath(*file.parts)
        if not (file.is_link or is_secret_path(file.parts) or find_in_data(path.read_bytes())):
            yield path
    yield from (project / name for name in config.workspace.include)
    if config.workspace.git:
        yield from sorted((project / ".git").rglob("*"))


def unpack_job(data: bytes, folder: Path) -> None:
    """Unpack a job that arrived. Blocks; raises KodeError `Storage`."""
    _unpack(data, folder)


def pack_run(folder: Path) -> bytes:
    """Return an archive of a run's folder: its regular files, no links. Blocks."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for parent, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = Path(parent, name)
                if stat.S_ISREG(os.lstat(path).st_mode):
                    archive.write(path, path.relative_to(folder).as_posix())
    return made.getvalue()


def unpack_run(data: bytes, folder: Path) -> None:
    """Unpack the folder of a run, completely or not at all. Raises KodeError `Storage`."""
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        _unpack(data, beside)
        os.replace(beside, folder)
    except OSError as error:
        raise KodeError("Storage", f"A run cannot be unpacked: {error.strerror}.") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _unpack(data: bytes, folder: Path) -> None:
    """Unpack an archive strictly below the folder, and restore executable bits."""
    try:
        folder.mkdir(parents=True)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                # `extract` removes drives, roots and `..` from names.
                place = archive.extract(member, folder)
                mode = member.external_attr >> 16
                if stat.S_ISREG(mode):
                    os.chmod(place, stat.S_IMODE(mode) & 0o777)
    except (OSError, zipfile.BadZipFile) as error:
        raise KodeError("Storage", f"An archive cannot be unpacked: {error}.") from None

"""`kode-sidecar doctor`: shows every setting, its source, and problems."""

import argparse
import os

import msgspec
from msgspec.structs import replace

from kode_sidecar.core.protocol.process import Check, DoctorResult
from kode_sidecar.core.settings import load_settings
from kode_sidecar.servers.boot.build_info import build_info
from kode_sidecar.servers.boot.doctor import examine
from kode_sidecar.servers.boot.system import home_folder


def doctor_command(options: argparse.Namespace) -> int:
    """Print the report; return 1 if a check failed."""
    report = examine(load_settings(os.environ, env_file=options.env_file), home=home_folder())
    if options.online:
        # Imported late: only this check needs a client and a sidecar.
        from kode_sidecar.terminal.cli import inquiry  # noqa: PLC0415

        found = inquiry.host_checks(options.env_file)
        online = [Check(name="online", ok=ok, message=text) for ok, text in found]
        if all(ok for ok, _ in found):
            text = "Every host with a key has answered."
            online.append(Check(name="online", ok=True, message=text))
        report = replace(report, checks=(*report.checks, *online))
    if options.json:
        print(msgspec.json.encode(report).decode())
    else:
        _print_report(report)
    return 0 if all(check.ok for check in report.checks) else 1


def _print_report(report: DoctorResult) -> None:
    print(f"kode-sidecar {build_info()}")
    print(f"protocol {report.protocol_version} on {report.platform}\n")
    width = max(len(setting.name) for setting in report.settings)
    for setting in report.settings:
        print(f"  {setting.name:<{width}}  {setting.value!s:<40}  {setting.source}")
    print()
    for check in report.checks:
        print(f"  {'ok  ' if check.ok else 'FAIL'} {check.name}: {check.message}")
        if check.hint is not None:
            print(f"       {check.hint}")

"""What the command line of `run` asks for."""

import argparse
import sys

from kode_sidecar.cli.run import RunCommandOptions, run_job
from kode_sidecar.cli.run_template import write_template
from kode_sidecar.headless_run import Overrides, RunIds, RunOptions


def run_command_line(options: argparse.Namespace) -> int:
    """Run the command; the exit code. Raises KodeError when no run could be begun."""
    if options.init is not None:
        write_template(options.init)
        sys.stdout.write(f"wrote {options.init}\n")
        return 0
    if options.config is None or (options.prompt is None and options.prompt_file is None):
        sys.stderr.write(
            "kode-sidecar run: --config and --prompt or --prompt-file say what to do; --init "
            "writes a configuration to begin with\n"
        )
        return 2
    workspace = None if options.workspace is None else str(options.workspace.absolute())
    run = RunOptions(
        config=options.config.absolute(),
        prompt=options.prompt_file.absolute() if options.prompt is None else options.prompt,
        sandbox=options.sandbox,
        ids=RunIds(options.session_id, options.task_id, options.run_id),
        overrides=Overrides(
            stream=options.stream,
            max_steps=options.max_steps,
            timeout_seconds=options.timeout,
            model=options.model,
            workspace=workspace,
        ),
        dry_run=options.dry_run or options.show_prompt,
    )
    return run_job(RunCommandOptions(run, options.json, options.show_prompt, options.env_file))

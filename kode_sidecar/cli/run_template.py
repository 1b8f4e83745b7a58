"""`kode-sidecar run --init`: a configuration to begin with, with every field explained."""

from pathlib import Path

from kode_sidecar.errors import KodeError

TEMPLATE = """\
# A job for `kode-sidecar run --config THIS_FILE --prompt "what to do"`.
# What is commented out shows a default, or an example; to change it take the "# " away.

kgent:
  schema_version: 1              # the form of this file

profile:
  id: my-job                     # stable: records and schedulers know the job by it
  role: |
    You review code. You read before you judge, and you say where each finding is.
  rules:                         # each one sentence or more
    - Report only what you have read, with path and line.

# model:
#   name: ide-chat               # a logical model, or an id of the service
#   temperature: 0.3             # null leaves it to the provider
#   top_p: 0.95
#   max_tokens: null

# A project to work on. It is copied into the sandbox; the original is only read.
# workspace:
#   import: .                    # relative to this file, downwards; or absolute
#   exclude: []                  # patterns as in .gitignore
#   include: []                  # files to copy although ignored, or with credentials in them
#   max_bytes: 500000000

deliverables:                    # the run is judged by them
  - path: deliverables/report.md # required ones lie under deliverables/
    description: The findings, the most important first.
#     required: true
#     content_type: text/markdown
#     min_bytes: 1

# skills:
#   enabled: []                  # ids; each must be found
#   folders: []                  # where to look first; then the user's own folder of skills
#   max_bytes: 40000             # what one skill may bring, references included

# tools:
#   offer: null                  # names; null offers all that are on
#   permissions: []              # - {tool: write_artifact, path: deliverables/**, effect: deny}
#   shell:                       # run_command: no shell, argv only
#     enabled: false
#     allow: []                  # beginnings of commands: - [git, diff]
#     environment: []            # names of variables that commands may see
#     timeout_seconds: 60
#     max_output_bytes: 200000
#   filesystem:
#     delete: false

# memory:
#   write_mode: candidate        # disabled | candidate (archive/candidate-memory.jsonl) | external
#   scope: default
#   recall_limit: 5
#   external:                    # needed for `external`
#     url: https://memory.example/v1
#     token_env: MEMORY_TOKEN    # the variable that holds the key; never the key itself
#     timeout_seconds: 10

# runtime:
#   stream: true
#   max_steps: 30                # answers with tool calls
#   timeout_seconds: 900
#   engine: native               # native | scripted | pydantic-ai
#   script: null                 # what the scripted engine plays
"""


def write_template(path: Path) -> None:
    """Write it to a new file. Raises KodeError `Storage` where there is one, or none can be."""
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise KodeError("Storage", f"{path} exists already; name another file.") from None
    except OSError as error:
        raise KodeError("Storage", f"{path} cannot be written: {error.strerror}.") from None

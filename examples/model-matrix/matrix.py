"""Print a line of JSON for each pair of a project and a model: tasks for `kode-sidecar batch`."""

import argparse
import json
import re
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", metavar="DIR", nargs="+", type=Path)
    parser.add_argument("--models", metavar="NAME", nargs="+", required=True)
    options = parser.parse_args()
    for project in options.projects:
        for model in options.models:
            task = {
                "id": re.sub(r"[^A-Za-z0-9._-]+", "-", f"{project.resolve().name}-{model}"),
                "workspace": str(project.resolve()),
                "set": {"model.name": model},
            }
            print(json.dumps(task))


if __name__ == "__main__":
    main()

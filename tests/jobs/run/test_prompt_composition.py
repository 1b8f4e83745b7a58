"""The prompt of a run: its parts in one order, equal bytes for equal parts (B3)."""

from pathlib import Path

import pytest

from kode_sidecar.agent.context.prompt_files import Locale, PromptFiles, find_prompts
from kode_sidecar.jobs.run.run_config import parse_run_config
from kode_sidecar.jobs.run.run_prompt import compose_prompt

CONFIG = """\
kgent: {schema_version: 1}
profile:
  id: job
  role: THE ROLE $HOME
  rules: [THE FIRST RULE, "THE SECOND RULE\\n# with $lines"]
deliverables:
- {path: deliverables/b.md, required: false}
- {path: deliverables/a.md, description: THE REPORT}
"""


@pytest.mark.parametrize("locale", ["zh", "en"])
def test_the_parts_come_in_their_order(locale: Locale) -> None:
    prompts = PromptFiles(find_prompts(), locale)
    config = parse_run_config(CONFIG, "job.yaml")
    whole = compose_prompt(prompts, config, "THE INDEX", "THE MEMORY")
    order = [
        "THE ROLE $HOME",
        "- THE FIRST RULE\n- THE SECOND RULE\n  # with $lines",
        "THE INDEX",
        "THE MEMORY",
        "`workspace/`",
        "- `deliverables/a.md`",
        "- `deliverables/b.md`",
    ]
    places = [whole.index(part) for part in order]
    assert places == sorted(places)
    assert ": THE REPORT\n" in whole
    assert compose_prompt(prompts, config, "THE INDEX", "THE MEMORY") == whole
    bare = compose_prompt(prompts, config)
    assert bare == whole.replace("THE INDEX\n\n", "").replace("THE MEMORY\n\n", "")


def test_a_broken_prompt_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    config = parse_run_config(CONFIG, "job.yaml")
    with pytest.raises(Exception, match=r"prompts/en/run_rules\.md is missing"):
        compose_prompt(PromptFiles(tmp_path, "en"), config)

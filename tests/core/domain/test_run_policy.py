"""The effective policy as a table: deny wins, what is dangerous is off by default. B9 W11"""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.permission import Effect, Rule
from kode_sidecar.core.domain.run_policy import (
    DANGEROUS,
    DELETES,
    Policy,
    command_rule,
    effective_policy,
)

EDIT, FILE, RUN = "propose_edit", "propose_file", "run_command"
SRC, CI = "workspace/src/a.py", "workspace/.github/workflows/ci.yml"

# rules, tool, subject, sensitive, allowed
TABLE: list[tuple[list[Rule], str, str, bool, bool]] = [
    ([], "read_file", SRC, False, True),
    ([], EDIT, SRC, False, True),
    ([], f"{FILE}:create", SRC, False, True),
    ([], f"{FILE}:move", SRC, False, True),
    ([], EDIT, CI, True, False),
    ([], RUN, "git", False, False),
    ([], f"{FILE}:delete", SRC, False, False),
    ([], f"{EDIT}:delete", SRC, False, False),
    # A denial, by name or by folder, in any case, over any permission and in any order.
    ([Rule(EDIT, SRC, "deny")], EDIT, SRC, False, False),
    ([Rule(EDIT, SRC.upper(), "deny")], EDIT, SRC, False, False),
    ([Rule(EDIT, "workspace/**", "deny"), Rule(EDIT, SRC)], EDIT, SRC, False, False),
    ([Rule(EDIT, SRC), Rule(EDIT, "**", "deny")], EDIT, SRC, False, False),
    ([Rule(FILE, "**", "deny")], f"{FILE}:move", SRC, False, False),
    ([Rule(f"{FILE}:move", "**", "deny")], f"{FILE}:create", SRC, False, True),
    ([Rule("read_file", "workspace/src/**", "deny")], "read_file", SRC, False, False),
    ([Rule("read_file", "workspace/src/**", "deny")], "read_file", "workspace/b", False, True),
    # To be asked is a no, but a permission spares the question.
    ([Rule(EDIT, "**", "ask")], EDIT, SRC, False, False),
    ([Rule(EDIT, "**", "ask"), Rule(EDIT, "workspace/**")], EDIT, SRC, False, True),
    # What is sensitive needs its very name.
    ([Rule(EDIT, "**")], EDIT, CI, True, False),
    ([Rule(EDIT, "workspace/.github/**")], EDIT, CI, True, False),
    ([Rule(EDIT, CI)], EDIT, CI, True, True),
    ([Rule(EDIT, CI), Rule(EDIT, "workspace/.github/**", "deny")], EDIT, CI, True, False),
    ([Rule(EDIT, CI)], f"{FILE}:create", CI, True, False),
    # What is dangerous needs the operation's name.
    ([Rule(FILE, "**")], f"{FILE}:delete", SRC, False, False),
    ([Rule(f"{FILE}:delete", "workspace/src/**")], f"{FILE}:delete", SRC, False, True),
    ([Rule(f"{FILE}:delete", "**")], f"{FILE}:delete", CI, True, False),
    ([Rule(f"{FILE}:delete", "**"), Rule(FILE, SRC, "deny")], f"{FILE}:delete", SRC, False, False),
    ([command_rule(["git"])], RUN, "git/status/", False, True),
    ([command_rule(["git"])], RUN, "gitk/", False, False),
    ([Rule(RUN, "**"), command_rule(["RM"], "deny")], RUN, "rm/-r/", False, False),
]


@pytest.mark.parametrize(("rules", "tool", "subject", "sensitive", "allowed"), TABLE)
def test_table(rules: list[Rule], tool: str, subject: str, sensitive: bool, allowed: bool) -> None:
    for order in itertools.permutations(rules):
        verdict = Policy(tuple(order)).verdict(tool, subject, sensitive=sensitive)
        assert verdict.allowed == allowed
        assert bool(verdict.reason) != allowed


@pytest.mark.parametrize("shell", [False, True])
@pytest.mark.parametrize("delete", [False, True])
def test_switches(shell: bool, delete: bool) -> None:
    policy = effective_policy(shell=shell, delete=delete)
    assert policy.offers(RUN) == policy.verdict(RUN, "git/").allowed == shell
    assert {policy.verdict(operation, SRC).allowed for operation in DELETES} == {delete}
    assert not policy.verdict(RUN, "sh/-c/").allowed
    assert policy.offers(FILE)


def test_named_programs_are_the_only_ones() -> None:
    rules = [command_rule(["git"]), command_rule(["python"])]
    policy = effective_policy(shell=True, delete=False, rules=rules)
    names = ("git", "python", "make")
    allowed = [name for name in names if policy.verdict(RUN, f"{name}/").allowed]
    assert allowed == ["git", "python"]
    off = effective_policy(shell=False, delete=False, rules=rules)
    assert not off.offers(RUN)
    assert not off.verdict(RUN, "git/").allowed


def test_what_may_do_nothing_is_not_offered() -> None:
    denied = Policy((Rule("search_code", "**", "deny"), Rule("read_file", "a/**", "deny")))
    assert [denied.offers(tool) for tool in ("search_code", "read_file", "list_files")] == [
        False,
        True,
        True,
    ]


tools = st.sampled_from([EDIT, FILE, f"{FILE}:delete", f"{EDIT}:delete", RUN, "read_file"])
effects = st.sampled_from(["allow", "ask", "deny"])
patterns = st.sampled_from(["**", "workspace/**", SRC, CI, "git"])
rules = st.lists(st.builds(Rule, tools, patterns, effects), max_size=6)


@given(rules, tools, patterns.filter(lambda name: "*" not in name), st.booleans(), effects)
def test_a_denial_is_never_undone(
    given_rules: list[Rule], tool: str, subject: str, sensitive: bool, effect: Effect
) -> None:
    """Whatever other rules there are, more denials never allow more, and nothing beats one."""
    denial = Rule(tool, subject, "deny")
    policy = Policy((*given_rules, denial))
    assert not policy.verdict(tool, subject, sensitive=sensitive).allowed
    before = Policy(tuple(given_rules)).verdict(tool, subject, sensitive=sensitive).allowed
    other = Policy((*given_rules, Rule(tool, "workspace/**", "deny")))
    assert before or not other.verdict(tool, subject, sensitive=sensitive).allowed
    if before and (sensitive or tool in DANGEROUS):
        assert any(rule.effect == "allow" and rule.tool in tool for rule in given_rules)

"""Which tools the model can reach by a request."""

import re
from collections.abc import Mapping
from typing import Any

from kode_sidecar.core.domain.message import FIND_TOOLS


def described_tools(body: Mapping[str, Any]) -> list[str]:
    """The names of the tools that a request describes."""
    return [tool["function"]["name"] for tool in body.get("tools", ())]


def reachable_tools(body: Mapping[str, Any]) -> list[str]:
    """Those, and the names that it says can be found."""
    about = [
        tool["function"]["description"]
        for tool in body.get("tools", ())
        if tool["function"]["name"] == FIND_TOOLS
    ]
    listed = (text.rpartition("There are: ")[2] for text in about)
    return [*described_tools(body), *(name for one in listed for name in re.findall(r"\w+", one))]

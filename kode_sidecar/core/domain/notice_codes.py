"""The table of notices: every `code` of the event `notice`, and its meaning.

Users read the notice; a program may act on its code. Codes are added, never removed.
"""

from collections.abc import Mapping
from typing import Literal

NoticeCode = Literal[
    "BudgetNear",
    "CommandEnded",
    "CompactingContext",
    "CompactionFailed",
    "EffortChanged",
    "GoalChecked",
    "HookFailed",
    "HookSays",
    "HooksUntrusted",
    "LeftOut",
    "MemoryUnavailable",
    "MessagesLost",
    "ModelRetired",
    "NoFolder",
    "NotSaved",
    "OtherModelTaken",
    "PicturesLeftOut",
    "PromptCut",
    "PromptLeftOut",
    "ReadAnew",
    "RequestAdapted",
    "RuleNotSaved",
    "SamplingDropped",
    "ServerFailed",
    "StreamDamaged",
    "StreamUnmarkedEnd",
    "ToolChoiceDropped",
    "ToolsLeftOut",
]

NOTICES: Mapping[NoticeCode, str] = {
    "BudgetNear": "Four fifths of a budget are spent.",
    "CommandEnded": "A command in the background ended.",
    "CompactingContext": "The model is asked for a summary, to make room.",
    "CompactionFailed": "There is no summary; what does not fit is left out.",
    "EffortChanged": "The model does not think as asked: the nearest way, or its own, was taken.",
    "GoalChecked": "A round of a goal ended: whether it is reached, and what is missing.",
    "HookFailed": "A hook gave no verdict, or made a turn go on too often.",
    "HookSays": "A hook of the user's says something to the user.",
    "HooksUntrusted": "Hooks of the project do not run: the user has not agreed to their text.",
    "LeftOut": "The model is not told the whole conversation, for want of room.",
    "MemoryUnavailable": "What is remembered could not be asked for; the turn goes on without.",
    "MessagesLost": "Damaged messages are missing from the session that was opened.",
    "ModelRetired": "The model's host has retired its id; another one answers, or none.",
    "NoFolder": "No folder is open: the model reads the open buffers and no files.",
    "NotSaved": "The session cannot be written to disk.",
    "OtherModelTaken": "The session's model does what the one for scouts or summaries cannot do.",
    "PicturesLeftOut": "The model reads text only, and does not see pictures of the conversation.",
    "PromptCut": "The model's host read less than it was sent.",
    "PromptLeftOut": "An earlier prompt or picture, which the host refused, is not sent again.",
    "ReadAnew": "The model's host cannot use its cache: what it reads anew, and the price.",
    "RequestAdapted": "The model's host refused part of a request, which is left out from now on.",
    "RuleNotSaved": "A lasting permission holds in this process, but could not be written.",
    "SamplingDropped": "Sampling settings were not sent, for the model chooses them itself.",
    "ServerFailed": "A tool server could not be asked: its tools are missing from a search.",
    "StreamDamaged": "Part of the answer could not be read and is missing from it.",
    "StreamUnmarkedEnd": "The answer ended without its mark: it may be incomplete.",
    "ToolChoiceDropped": "The model cannot be made to call a tool and was asked by words.",
    "ToolsLeftOut": "The model is not offered all tools, for it or its host refuses some.",
}

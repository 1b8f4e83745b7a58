"""The dialects there are, by the name that a profile carries."""

from collections.abc import Mapping

from kode_sidecar.providers.dialect import Dialect
from kode_sidecar.providers.kimi import KIMI
from kode_sidecar.providers.profiles import DialectName

DIALECTS: Mapping[DialectName, Dialect] = {"kimi": KIMI}

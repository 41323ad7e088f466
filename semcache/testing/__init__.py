"""Fakes for tests, and the promises that each store and index must keep.

A store's whole test file is a class that inherits `PlanStoreContract` (`SharedStoreContract` if it
outlives its process) and says how one is made; the methods are collected by pytest:

    class TestMyStore(PlanStoreContract):
        def make(self, tmp_path):
            return MyStore(tmp_path)
"""

from semcache.testing.fakes import (
    FakeClock,
    HashEmbedder,
    RecordingObserver,
    ScriptedModel,
    make_record,
    same_records,
    unit,
)
from semcache.testing.plan_store_contract import PlanStoreContract, SharedStoreContract
from semcache.testing.response_store_contract import PLENTY, ResponseStoreContract, keep
from semcache.testing.vector_index_contract import VectorIndexContract

__all__ = [
    "PLENTY",
    "FakeClock",
    "HashEmbedder",
    "PlanStoreContract",
    "RecordingObserver",
    "ResponseStoreContract",
    "ScriptedModel",
    "SharedStoreContract",
    "VectorIndexContract",
    "keep",
    "make_record",
    "same_records",
    "unit",
]

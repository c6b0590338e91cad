"""The tables, declared. migrations/ makes them, and a test holds the two together."""

from sqlmodel import SQLModel

from citeloop.store.tables.buying import (
    ChannelCountTable,
    ChannelTable,
    FaultTable,
    PurchaseTable,
    SiteTable,
    UsageTable,
)
from citeloop.store.tables.doors import ApiKeyTable, BrandHandleTable, IdempotencyKeyTable
from citeloop.store.tables.measuring import ManifestTable, PromptTable, SampleTable
from citeloop.store.tables.publishing import CallbackTable, CorrectionTable, PublicationTable
from citeloop.store.tables.sites import RegisteredSiteTable, SiteLabelTable, SiteLaneTable
from citeloop.store.tables.throttling import ChannelDayTable, ChannelStretchTable, ChannelTakingTable
from citeloop.store.tables.work import (
    ArticleTable,
    BrandTable,
    CampaignTable,
    CampaignWindowTable,
    DecisionTable,
    DraftTable,
    EventTable,
    PictureTable,
    TenantTable,
    VerdictTable,
)

METADATA = SQLModel.metadata

__all__ = [
    "METADATA",
    "ApiKeyTable",
    "ArticleTable",
    "BrandHandleTable",
    "BrandTable",
    "CallbackTable",
    "CampaignTable",
    "CampaignWindowTable",
    "ChannelCountTable",
    "ChannelDayTable",
    "ChannelStretchTable",
    "ChannelTable",
    "ChannelTakingTable",
    "CorrectionTable",
    "DecisionTable",
    "DraftTable",
    "EventTable",
    "FaultTable",
    "IdempotencyKeyTable",
    "ManifestTable",
    "PictureTable",
    "PromptTable",
    "PublicationTable",
    "PurchaseTable",
    "RegisteredSiteTable",
    "SampleTable",
    "SiteLabelTable",
    "SiteLaneTable",
    "SiteTable",
    "TenantTable",
    "UsageTable",
    "VerdictTable",
]

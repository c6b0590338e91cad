"""What our channels need to know of the sandbox, which keeps no secret."""

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "sandbox" / "demo.toml"
CHANNELS = ROOT / "examples" / "channels.sandbox.toml"
BRAND = ROOT / "examples" / "milvus" / "brand.toml"
KEYWORDS = ROOT / "examples" / "milvus" / "keywords.csv"

ENVIRONMENT: Mapping[str, str] = {
    "SANDBOX_KEY": "sandbox-key",
    "SANDBOX_BLOG_USER": "citeloop",
    "SANDBOX_BLOG_PASSWORD": "sandbox app pass",
    "SANDBOX_HOOK_SECRET": "whsec_Y2l0ZWxvb3Agc2FuZGJveCwgMzIgYnl0ZXMgbG9uZyE=",
}

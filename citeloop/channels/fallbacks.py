"""Which channel takes over from which, as channels.toml says: only known ones, and never in a circle."""

from collections.abc import Mapping

from citeloop.channels.toml_spots import Spot
from citeloop.models.channel import ChannelSpec


def check_fallbacks(spots: Mapping[str, Spot], channels: Mapping[str, ChannelSpec]) -> None:
    """Raises CatalogError where a fallback is unknown, can do nothing that its channel does, or closes a circle."""
    for name, channel in channels.items():
        if channel.fallback is None:
            continue
        spot = spots[name].table()["fallback"]
        spot.choice(channels)
        if not channel.roles & channels[channel.fallback].roles:
            roles = ", ".join(sorted(channel.roles))
            raise spot.wrong(f"{channel.fallback} has none of the roles of {name} ({roles}); name another channel")
        chain = _chain(name, channels)
        if chain[-1] == name:
            raise spot.wrong(f"leads in a circle: {' → '.join(chain)}; remove one of these fallbacks")


def _chain(name: str, channels: Mapping[str, ChannelSpec]) -> list[str]:
    """From a channel along its fallbacks, up to the first one that was met before, or the last."""
    chain = [name]
    while (following := channels[chain[-1]].fallback) is not None and following in channels:
        met = following in chain
        chain.append(following)
        if met:
            break
    return chain

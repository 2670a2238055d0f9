"""Who ranks for a point of space, if there is no centre? D-ZaLaPS, a peer-to-peer system over CAN.

`zones` divide a torus among peers, `cells` lay a grid over it, `space` says where events and subscriptions lie in it,
and a `merger` which cells concern a peer. A `peer` is what each of them does, and `hand_over` how a zone moves.
"""

from tamis.routing.dzalaps.cells import CellGrid, Plots
from tamis.routing.dzalaps.merger import Reach, merger
from tamis.routing.dzalaps.peer import Peer
from tamis.routing.dzalaps.space import Space
from tamis.routing.dzalaps.zones import Zone, Zones

__all__ = ["CellGrid", "Peer", "Plots", "Reach", "Space", "Zone", "Zones", "merger"]

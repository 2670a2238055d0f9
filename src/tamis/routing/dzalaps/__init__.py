"""Who ranks for a point of space, if there is no centre? D-ZaLaPS, a peer-to-peer system over CAN.

`zones` divide a torus among peers, `cells` lay a grid over it, and a `merger` says which cells concern a peer.
"""

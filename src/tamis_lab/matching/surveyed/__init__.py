"""The rest of the field: structures that the sources describe, or compared with, beside their own.

`sliced` counts hits in bits across conjunctions, `access` gives access to clusters by several equalities at once, and
`fixed_order` is Gryphon's tree as Jewel compared it. The compiled loops are in `kernels`.
"""

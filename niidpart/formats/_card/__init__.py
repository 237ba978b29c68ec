"""The card of a published split: what a reader of the repository sees, and what `datasets` reads.

Its YAML part tells `datasets` which file belongs to which table.
"""

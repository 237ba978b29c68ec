"""The split file: writing it, and reading one that may be damaged or hostile.

docs/format.md is the specification. In the order in which a file is read: `guard` and `chunks` look
at structure and inflate values within `limits`; `json_text`, `manifest` and `layout` at what a file
says of itself; `part_rules` and `rules` at what that means. `sandbox` does all of that in a child
process (`child`), `bounded` derives a split in one. `reading` and `writing` are the doors; `opened`
reads one party without the rest.
"""

"""The split file: writing it, and reading one that nobody vouches for. docs/format.md is the specification.

`guard` and `chunks` look at structure and inflate values within `limits`, `manifest` and `layout` at what a file says of itself, `check` at what it
means; `sandbox` does all of that in a child process, `opened` and `stored` without reading all. `h5` writes.
"""

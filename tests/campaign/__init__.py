"""Campaigns of damage: files near good ones, by the million, each read with every reader.

`python -m campaign splits --count 1000000 --folder FOLDER`, in tests/, goes on where it was stopped;
with `--count 0` it shows what was done so far, while it goes on too. `python -m campaign splits --one NUMBER` shows what
became of one mutant. Subjects: `splits`, `headers` (what a split file
says of how its values are stored), `runs` (folders), and `flips`, every byte of one split file. `make campaign` runs the first three.
A sample is in the tests. docs/reliability.md has the figures.

A mutant is its number: which file, which damage and where follow from it. `supervisor` hands blocks
of numbers to `worker` processes with limits, and writes down what became of them.
"""

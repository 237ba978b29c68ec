"""A split that is larger than memory, made through files: the same splits as in `making`.

In memory are the sizes of classes, what a strategy draws, the counts of each class at each party,
and a few million rows at a time. The labels, who owns each row, and the rows of each party lie in
files of a scratch folder.
"""

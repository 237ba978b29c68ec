"""Studies: a plan becomes many runs, one folder that any number of workers fill. Needs no torch.

`plan` and `expansion` say which cells there are, `folder` where they lie, `claims` who works on
which, `worker` what a worker does, and `engines` what starts workers.
"""

"""Studies: a plan becomes many runs, one folder that any number of workers fill. Needs no torch.

`plans` say what cells ask for, `cells` are that under a name, `folder` is where they lie and who
works on which, `work` what workers do, `engines` what starts them; `papers` are plans that come
with the package.
"""

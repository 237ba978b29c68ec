"""`python -m niidpart_cli.train`: the same as `fltrain`, for launchers such as torchrun."""

from . import main

main()
